// SPDX-License-Identifier: BSL-1.0
// expect: divided() is for READ, WRITE and WRITE_WITH_IMMEDIATE: anything else is one message
#include <verbena/verbena.hpp>

namespace vb = verbena;

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               const vb::remote_region<std::uint64_t, vb::rights::remote_atomic>& target) {
  using policies = vb::policies<>;
#ifdef FIXED
  return vb::chain::post<policies>(state, vb::compare_and_swap(memory, target, 1, 2));
#else
  return vb::chain::post<policies>(state, vb::compare_and_swap(memory, target, 1, 2).divided());
#endif
}
