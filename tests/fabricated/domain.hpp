// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

struct domain : ibv_pd {
  int users = 0;  ///< memory regions and queue pairs
};

}  // namespace fabricated
