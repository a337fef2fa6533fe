// SPDX-License-Identifier: BSL-1.0
// expect: divided() is for READ, WRITE and WRITE_WITH_IMMEDIATE: anything else is one message
#include <verbena/verbena.hpp>

namespace vb = verbena;

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               const vb::remote_region<std::uint64_t, vb::rights::remote_atomic>& target) {
  using policies = vb::policies<>;
#ifdef FIXED
  return vb::chain::post<policies>(state, vb::fetch_and_add(memory, target, 1));
#else
  return vb::chain::post<policies>(state, vb::fetch_and_add(memory, target, 1).divided());
#endif
}
