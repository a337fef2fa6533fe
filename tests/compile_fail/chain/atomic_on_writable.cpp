// SPDX-License-Identifier: BSL-1.0
// expect: an atomic needs a remote region with the right remote_atomic: its owner must give it the
// role
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
constexpr vb::rights granted = vb::rights::remote_atomic;
#else
constexpr vb::rights granted = vb::rights::remote_write;
#endif

void use(vb::connection<>& link, const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& old,
         vb::remote_region<std::uint64_t, granted> target) {
  (void)link.post(vb::compare_and_swap(old, target, 1, 2));
}
