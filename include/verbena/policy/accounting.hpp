// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

namespace verbena {

/// Axis "accounting": whether post checks what it is given before the provider is called. The
/// positions of requests are counted either way.
template <class P>
concept accounting_policy = requires {
  { P::checks } -> std::convertible_to<bool>;
};

}  // namespace verbena
