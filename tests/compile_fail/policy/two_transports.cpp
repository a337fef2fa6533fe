// SPDX-License-Identifier: BSL-1.0
// expect: two transports are named: a connection has one transport policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

struct mine : vb::transport::rc {};

#ifdef FIXED
using peer = vb::connection<mine>;
#else
using peer = vb::connection<vb::transport::rc, mine>;
#endif
static_assert(sizeof(peer) != 0);
