// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/completion.hpp>
#include <verbena/policy/policy_set.hpp>

namespace vb = verbena;

// The smallest way of completion.
struct smallest {
  static constexpr int batch = 1;
  static constexpr bool uses_channel = false;
  static vb::awake idle(vb::completion_waiter&, std::uint32_t,
                        std::chrono::steady_clock::time_point) {
    return vb::awake::look_again;
  }
};
static_assert(vb::completion_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::completion, smallest>);

struct without_room : smallest {
  static constexpr int batch = 0;
};
static_assert(!vb::has_poll_batch<without_room> && !vb::completion_policy<without_room>);

struct without_answer : smallest {
  static void idle(vb::completion_waiter&, std::uint32_t, std::chrono::steady_clock::time_point) {}
};
static_assert(!vb::can_idle<without_answer> && !vb::completion_policy<without_answer>);

struct without_channel_use {
  static constexpr int batch = 1;
  static vb::awake idle(vb::completion_waiter&, std::uint32_t,
                        std::chrono::steady_clock::time_point);
};
static_assert(!vb::tells_channel_use<without_channel_use> &&
              !vb::completion_policy<without_channel_use>);
