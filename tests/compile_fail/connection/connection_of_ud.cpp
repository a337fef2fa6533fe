// SPDX-License-Identifier: BSL-1.0
// expect: transport::ud has no connections: a datagram queue pair sends to any peer
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using link_type = vb::connection<vb::transport::uc>;
#else
using link_type = vb::connection<vb::transport::ud>;
#endif
static_assert(sizeof(link_type) != 0);
