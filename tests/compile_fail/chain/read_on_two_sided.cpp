// SPDX-License-Identifier: BSL-1.0
// expect: READ needs transport::rc; uc carries send and write, ud carries send
#include <verbena/verbena.hpp>

namespace vb = verbena;

template <vb::role... Roles>
using local = vb::buffer<char, vb::grants_of<Roles...>>;
template <vb::role... Roles>
using remote = vb::remote_region<char, vb::remote_part(vb::grants_of<Roles...>)>;

struct two_sided : vb::transport::rc {
  static constexpr bool carries(vb::operation of) noexcept {
    return of == vb::operation::send || of == vb::operation::receive;
  }
};
using link_type = vb::connection<two_sided>;

void use(link_type& link, const local<vb::sink>& memory, remote<vb::remote_readable> from) {
#ifdef FIXED
  (void)link.post(vb::send(memory));
#else
  (void)link.post(vb::read(memory, from));
#endif
}
