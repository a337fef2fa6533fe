// SPDX-License-Identifier: BSL-1.0
// expect: FETCH_AND_ADD needs transport::rc; uc carries send and write, ud carries send
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using policies = vb::policies<vb::transport::rc>;
#else
using policies = vb::policies<vb::transport::uc>;
#endif

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               vb::remote_region<std::uint64_t, vb::rights::remote_atomic> region) {
  return vb::chain::post<policies>(state, vb::fetch_and_add(memory, region, 1));
}
