// SPDX-License-Identifier: BSL-1.0
// expect: WRITE_WITH_IMMEDIATE needs transport::rc or uc; ud carries send
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using policies = vb::policies<vb::transport::uc>;
#else
using policies = vb::policies<vb::transport::ud>;
#endif

vb::posted use(vb::queue_pair_state& state,
               const vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>& memory,
               vb::remote_region<std::uint64_t, vb::rights::remote_write> region) {
  return vb::chain::post<policies>(state, vb::write_with_immediate(memory, region, 7));
}
