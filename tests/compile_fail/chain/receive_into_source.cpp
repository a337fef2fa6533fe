// SPDX-License-Identifier: BSL-1.0
// expect: RECEIVE, READ and atomics write to their local memory: give it the role sink
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;

#ifdef FIXED
void use(vb::connection<>& link, const local<vb::sink>& memory) {
#else
void use(vb::connection<>& link, const local<vb::source>& memory) {
#endif
  (void)link.post(vb::receive(memory));
}
