// SPDX-License-Identifier: BSL-1.0
// expect: transport::ud needs signaling::every: it has no writes
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using chosen = vb::policies<vb::transport::uc, vb::signaling::per_operation>;
#else
using chosen = vb::policies<vb::transport::ud, vb::signaling::per_operation>;
#endif
static_assert(sizeof(chosen) != 0);
