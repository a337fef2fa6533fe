// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>

#include <verbena/policy/completion.hpp>

namespace verbena::completion {

/// Waits asleep on a completion channel: arm, poll once more, sleep (ibv_get_cq_event(3)). The
/// core is free meanwhile; waking costs a few microseconds.
struct event_driven {
  static constexpr int batch = 16;
  static constexpr bool uses_channel = true;

  static awake idle(completion_waiter& waiter, std::uint32_t,
                    std::chrono::steady_clock::time_point deadline) noexcept {
    if (waiter.armed()) return waiter.sleep(deadline);
    return waiter.arm() == 0 ? awake::look_again : awake::failed;
  }
};

static_assert(completion_policy<event_driven>);

}  // namespace verbena::completion
