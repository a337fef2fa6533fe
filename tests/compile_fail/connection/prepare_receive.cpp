// SPDX-License-Identifier: BSL-1.0
// expect: prepare() is for sends, reads, writes and atomics: post receives as they are
#include <verbena/verbena.hpp>

namespace vb = verbena;

void use(vb::connection<>& link, vb::buffer<char, vb::grants_of<vb::sink>>& memory) {
#ifdef FIXED
  (void)link.prepare(vb::send(memory));
#else
  (void)link.prepare(vb::receive(memory));
#endif
}
