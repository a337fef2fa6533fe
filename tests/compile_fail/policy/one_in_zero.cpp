// SPDX-License-Identifier: BSL-1.0
// expect: one_in<N> signals one request in N: N is at least 1
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using peer = vb::connection<vb::signaling::one_in<1>>;
#else
using peer = vb::connection<vb::signaling::one_in<0>>;
#endif
static_assert(sizeof(peer) != 0);
