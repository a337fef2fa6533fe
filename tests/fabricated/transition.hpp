// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

/// One call of modify_qp that was accepted.
struct transition {
  ibv_qp_state from;
  ibv_qp_attr attributes;
  int mask;
};

}  // namespace fabricated
