// SPDX-License-Identifier: BSL-1.0
// expect: a RECEIVE always completes: unsignaled() is for send, read and write
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;

void use(vb::connection<vb::signaling::per_operation>& link, const local<vb::sink>& memory) {
#ifdef FIXED
  (void)link.post(vb::receive(memory));
#else
  (void)link.post(vb::receive(memory).unsignaled());
#endif
}
