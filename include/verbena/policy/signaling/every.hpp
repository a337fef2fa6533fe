// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/policy/signaling.hpp>

namespace verbena::signaling {

/// Every request completes visibly.
struct every {
  static constexpr bool by_request = false;
  static constexpr std::uint16_t window(std::uint32_t) noexcept { return 1; }
  static constexpr bool signals(std::uint16_t&, std::uint16_t, bool) noexcept { return true; }
};

static_assert(signaling_policy<every>);

}  // namespace verbena::signaling
