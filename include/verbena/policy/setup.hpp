// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

namespace verbena {

/// Axis "setup": how the two ends find each other. Only set-up code depends on it.
template <class P>
concept setup_policy = requires {
  { P::uses_cm } -> std::convertible_to<bool>;
};

}  // namespace verbena
