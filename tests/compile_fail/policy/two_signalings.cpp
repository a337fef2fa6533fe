// SPDX-License-Identifier: BSL-1.0
// expect: two signalings are named: a connection has one signaling policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using peer = vb::connection<vb::signaling::one_in<16>, vb::setup::descriptor>;
#else
using peer =
    vb::connection<vb::signaling::one_in<16>, vb::setup::descriptor, vb::signaling::one_in<8>>;
#endif
static_assert(sizeof(peer) != 0);
