// SPDX-License-Identifier: BSL-1.0
// expect: WRITE needs a remote region with the right remote_write
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;
template <vb::role... Roles>
using remote = vb::remote_region<char, vb::remote_part(vb::grants_of<Roles...>)>;

#ifdef FIXED
void use(vb::connection<>& link, const local<vb::source>& memory, remote<vb::remote_writable> to) {
#else
void use(vb::connection<>& link, const local<vb::source>& memory, remote<vb::remote_readable> to) {
#endif
  (void)link.post(vb::write(memory, to));
}
