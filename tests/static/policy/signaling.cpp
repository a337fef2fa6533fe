// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/signaling.hpp>

namespace vb = verbena;

// The smallest signaling.
struct smallest {
  static constexpr bool by_request = false;
  static std::uint16_t window(std::uint32_t) { return 1; }
  static bool signals(std::uint16_t&, std::uint16_t, bool) { return true; }
};
static_assert(vb::signaling_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::signaling, smallest>);

struct by_value {
  static constexpr bool by_request = false;
  static std::uint16_t window(std::uint32_t) { return 1; }
  static int signals(std::uint16_t, std::uint16_t, bool) { return 1; }
};
static_assert(!vb::chooses_signals<by_value> && !vb::signaling_policy<by_value>);

struct without_window {
  static constexpr bool by_request = false;
  static bool signals(std::uint16_t&, std::uint16_t, bool) { return true; }
};
static_assert(!vb::has_signal_window<without_window> && !vb::signaling_policy<without_window>);

struct silent_on_requests {
  static std::uint16_t window(std::uint32_t) { return 1; }
  static bool signals(std::uint16_t&, std::uint16_t, bool) { return true; }
};
static_assert(!vb::tells_whether_requests_choose<silent_on_requests> &&
              !vb::signaling_policy<silent_on_requests>);
