// SPDX-License-Identifier: BSL-1.0
// expect: two setups are named: a connection has one setup policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using peer = vb::connection<vb::setup::descriptor>;
#else
using peer = vb::connection<vb::setup::cm, vb::setup::descriptor>;
#endif
static_assert(sizeof(peer) != 0);
