// SPDX-License-Identifier: BSL-1.0
// expect: two postings are named: a connection has one posting policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

struct mine : vb::posting::list {};

#ifdef FIXED
using peer = vb::connection<mine>;
#else
using peer = vb::connection<vb::posting::list, mine>;
#endif
static_assert(sizeof(peer) != 0);
