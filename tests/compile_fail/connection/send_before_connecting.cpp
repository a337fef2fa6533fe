// SPDX-License-Identifier: BSL-1.0
// expect: an endpoint is not connected yet: it can post receives only, connect it to send
#include <verbena/verbena.hpp>

namespace vb = verbena;

void use(vb::endpoint<>& here, const vb::buffer<char, vb::grants_of<vb::sink>>& memory) {
#ifdef FIXED
  (void)here.post(vb::receive(memory));
#else
  (void)here.post(vb::send(memory));
#endif
}
