// SPDX-License-Identifier: BSL-1.0
// expect: two ways with errors are named: a connection has one errors policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using peer = vb::connection<vb::errors::returning>;
#else
using peer = vb::connection<vb::errors::returning, vb::errors::throwing>;
#endif
static_assert(sizeof(peer) != 0);
