// SPDX-License-Identifier: BSL-1.0
// expect: RECEIVE, READ and atomics write to their local memory: give it the role sink
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;

#ifdef FIXED
void use(vb::connection<>& link, const local<vb::sink>& head, const local<vb::sink>& body) {
#else
void use(vb::connection<>& link, const local<vb::sink>& head, const local<vb::source>& body) {
#endif
  (void)link.post(vb::receive(vb::pieces(head, body)));
}
