// SPDX-License-Identifier: BSL-1.0
// expect: transport::ud is connected with nobody: say whom a send is for, send(...).to(peer)
#include <verbena/verbena.hpp>

namespace vb = verbena;

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               const vb::peer& peer) {
  using policies = vb::policies<vb::transport::ud>;
#ifdef FIXED
  return vb::chain::post<policies>(state, vb::send(memory).to(peer));
#else
  return vb::chain::post<policies>(state, vb::send(memory));
#endif
}
