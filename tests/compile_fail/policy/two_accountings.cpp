// SPDX-License-Identifier: BSL-1.0
// expect: two accountings are named: a connection has one accounting policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using peer = vb::connection<vb::accounting::unchecked>;
#else
using peer = vb::connection<vb::accounting::unchecked, vb::accounting::ledger>;
#endif
static_assert(sizeof(peer) != 0);
