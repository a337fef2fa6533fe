// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>

#include <verbena/policy/completion/busy_poll.hpp>
#include <verbena/policy/completion/event_driven.hpp>

namespace verbena::completion {

/// Polls Polls times, then sleeps as event_driven does: what arrives soon costs no wake-up, what
/// does not costs no core.
template <std::uint32_t Polls>
struct spin_then_wait {
  static_assert(Polls > 0, "spin_then_wait<0> is event_driven: name that");
  static constexpr int batch = event_driven::batch;
  static constexpr bool uses_channel = true;

  static awake idle(completion_waiter& waiter, std::uint32_t empty_polls,
                    std::chrono::steady_clock::time_point deadline) noexcept {
    return empty_polls < Polls ? busy_poll::idle(waiter, empty_polls, deadline)
                               : event_driven::idle(waiter, empty_polls, deadline);
  }
};

static_assert(completion_policy<spin_then_wait<2000>>);

}  // namespace verbena::completion
