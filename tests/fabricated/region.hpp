// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

struct region : ibv_mr {
  int access = 0;
};

}  // namespace fabricated
