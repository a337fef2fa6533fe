// SPDX-License-Identifier: BSL-1.0
// expect: RECEIVE, READ and atomics write to their local memory: give it the role sink
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;
template <vb::role... Roles>
using remote = vb::remote_region<char, vb::remote_part(vb::grants_of<Roles...>)>;

#ifdef FIXED
void use(vb::connection<>& link, const local<vb::sink>& memory, remote<vb::remote_readable> from) {
#else
void use(vb::connection<>& link, const local<vb::source>& memory,
         remote<vb::remote_readable> from) {
#endif
  (void)link.post(vb::read(memory, from));
}
