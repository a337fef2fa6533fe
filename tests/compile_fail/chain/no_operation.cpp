// SPDX-License-Identifier: BSL-1.0
// expect: post takes operations: send, receive, read or write
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;

void use(vb::connection<>& link, const local<vb::sink>& memory) {
#ifdef FIXED
  (void)link.post(vb::send(memory));
#else
  (void)link.post(memory);
#endif
}
