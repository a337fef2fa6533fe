// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

class machine;

/// The context that leads every call to its machine. Its abi_compat is null, which keeps the
/// inline extended verbs from looking for fields before it.
struct context : ibv_context {
  machine* owner;
  int users = 0;  ///< objects made on it
};

}  // namespace fabricated
