// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <verbena/policy/signaling.hpp>

namespace verbena::signaling {

/// Every N-th request asks for a completion, which retires the ones before it: fewer completions
/// to poll, later notice. Half the queue's depth is the most that stays unsignaled.
template <std::uint16_t N>
struct one_in {
  static_assert(N > 0, "signaling::one_in<N> signals one request in N: N is at least 1");
  static constexpr bool by_request = false;
  static constexpr std::uint16_t window(std::uint32_t depth) noexcept {
    return static_cast<std::uint16_t>(std::clamp<std::uint32_t>(depth / 2, 1, N));
  }
  static constexpr bool signals(std::uint16_t& unsignaled, std::uint16_t window, bool) noexcept {
    if (++unsignaled < window) [[likely]]
      return false;
    unsignaled = 0;
    return true;
  }
};

static_assert(signaling_policy<one_in<16>>);

}  // namespace verbena::signaling
