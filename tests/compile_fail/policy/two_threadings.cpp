// SPDX-License-Identifier: BSL-1.0
// expect: two threadings are named: a connection has one threading policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

struct mine : vb::threading::single_owner {};

#ifdef FIXED
using peer = vb::connection<mine>;
#else
using peer = vb::connection<vb::threading::single_owner, mine>;
#endif
static_assert(sizeof(peer) != 0);
