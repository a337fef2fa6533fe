// SPDX-License-Identifier: BSL-1.0
// expect: post needs at least one operation
#include <verbena/verbena.hpp>

namespace vb = verbena;

void use(vb::connection<>& link, const vb::buffer<char, vb::rights{}>& memory) {
#ifdef FIXED
  (void)link.post(vb::send(memory));
#else
  (void)memory;
  (void)link.post();
#endif
}
