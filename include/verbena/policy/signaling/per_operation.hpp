// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <verbena/policy/signaling.hpp>

namespace verbena::signaling {

/// Requests are signaled unless the operation says `.unsignaled()`; after half a queue of those
/// one is signaled all the same, so that the queue can be emptied.
struct per_operation {
  static constexpr bool by_request = true;
  static constexpr std::uint16_t window(std::uint32_t depth) noexcept {
    return static_cast<std::uint16_t>(std::max<std::uint32_t>(depth / 2, 1));
  }
  static constexpr bool signals(std::uint16_t& unsignaled, std::uint16_t window,
                                bool asked) noexcept {
    if (!asked && ++unsignaled < window) [[likely]]
      return false;
    unsignaled = 0;
    return true;
  }
};

static_assert(signaling_policy<per_operation>);

}  // namespace verbena::signaling
