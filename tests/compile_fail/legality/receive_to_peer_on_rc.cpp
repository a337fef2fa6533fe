// SPDX-License-Identifier: BSL-1.0
// expect: to(peer) is for sends: a RECEIVE takes the message of anybody
#include <verbena/verbena.hpp>

namespace vb = verbena;

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               const vb::peer& peer) {
  using policies = vb::policies<vb::transport::rc>;
#ifdef FIXED
  return vb::chain::post<policies>(state, vb::receive(memory));
#else
  return vb::chain::post<policies>(state, vb::receive(memory).to(peer));
#endif
}
