// SPDX-License-Identifier: BSL-1.0
// expect: RECEIVE, READ and atomics write to their local memory: give it the role sink
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using role = vb::sink;
#else
using role = vb::source;
#endif

void use(vb::connection<>& link, const vb::buffer<std::uint64_t, vb::grants_of<role>>& old,
         vb::remote_region<std::uint64_t, vb::rights::remote_atomic> target) {
  (void)link.post(vb::fetch_and_add(old, target, 1));
}
