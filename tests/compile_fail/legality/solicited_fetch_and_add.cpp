// SPDX-License-Identifier: BSL-1.0
// expect: solicited() is for SEND, SEND_WITH_IMMEDIATE and WRITE_WITH_IMMEDIATE: nothing else gives
#include <verbena/verbena.hpp>

namespace vb = verbena;

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               vb::remote_region<std::uint64_t, vb::rights::remote_atomic> region) {
  using policies = vb::policies<vb::transport::rc>;
#ifdef FIXED
  return vb::chain::post<policies>(state, vb::fetch_and_add(memory, region, 1));
#else
  return vb::chain::post<policies>(state, vb::fetch_and_add(memory, region, 1).solicited());
#endif
}
