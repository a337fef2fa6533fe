// SPDX-License-Identifier: BSL-1.0
// expect: prepare() keeps work requests for ibv_post_send: it needs posting::list
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using link_type = vb::connection<vb::posting::list>;
#else
using link_type = vb::connection<vb::posting::builder>;
#endif

void use(link_type& link, vb::buffer<char, vb::grants_of<vb::sink>>& memory) {
  (void)link.prepare(vb::send(memory));
}
