// SPDX-License-Identifier: BSL-1.0
// expect: pieces{} without memory: a request has one piece at least
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
void use(vb::connection<>& link, const vb::buffer<char, vb::rights{}>& memory) {
  (void)link.post(vb::send(vb::pieces{memory}));
}
#else
void use(vb::connection<>& link) { (void)link.post(vb::send(vb::pieces{})); }
#endif
