// SPDX-License-Identifier: BSL-1.0
// expect: a policy belongs to one axis: this one models the concepts of several
#include <verbena/verbena.hpp>

namespace vb = verbena;

struct mine {
  static constexpr bool uses_cm = false;
#ifndef FIXED
  static constexpr bool checks = true;
#endif
};
using peer = vb::connection<mine>;
static_assert(sizeof(peer) != 0);
