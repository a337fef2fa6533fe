// SPDX-License-Identifier: BSL-1.0
// expect: what is named here is no policy: it models none of the concepts transport_policy
#include <verbena/verbena.hpp>

namespace vb = verbena;

struct fast {};

#ifdef FIXED
using peer = vb::connection<>;
#else
using peer = vb::connection<fast>;
#endif
static_assert(sizeof(peer) != 0);
