// SPDX-License-Identifier: BSL-1.0
// expect: two ways of completion are named: a connection has one completion policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using peer = vb::connection<vb::completion::event_driven>;
#else
using peer = vb::connection<vb::completion::busy_poll, vb::completion::event_driven>;
#endif
static_assert(sizeof(peer) != 0);
