// SPDX-License-Identifier: BSL-1.0
// expect: receives go to another queue than sends, reads and writes: use one post for each
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;

void use(vb::connection<>& link, const local<vb::sink>& memory) {
#ifdef FIXED
  (void)link.post(vb::send(memory), vb::send(memory));
#else
  (void)link.post(vb::receive(memory), vb::send(memory));
#endif
}
