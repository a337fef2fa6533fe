// SPDX-License-Identifier: BSL-1.0
// expect: solicited() is for SEND, SEND_WITH_IMMEDIATE and WRITE_WITH_IMMEDIATE: nothing else gives
#include <verbena/verbena.hpp>

namespace vb = verbena;

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               vb::remote_region<std::uint64_t, vb::rights::remote_read> region) {
  using policies = vb::policies<vb::transport::rc>;
#ifdef FIXED
  return vb::chain::post<policies>(state, vb::read(memory, region));
#else
  return vb::chain::post<policies>(state, vb::read(memory, region).solicited());
#endif
}
