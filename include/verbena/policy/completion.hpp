// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

#include <verbena/connection/completion_waiter.hpp>

namespace verbena {

template <class P>
concept has_poll_batch = requires {
  { P::batch } -> std::convertible_to<int>;
  requires P::batch > 0;
};

template <class P>
concept tells_channel_use = requires {
  { P::uses_channel } -> std::convertible_to<bool>;
};

template <class P>
concept can_idle = requires(completion_waiter& waiter, std::uint32_t empty_polls,
                            std::chrono::steady_clock::time_point deadline) {
  { P::idle(waiter, empty_polls, deadline) } -> std::same_as<awake>;
};

/// Axis "completion": how completions are awaited and how many are taken at a time. `idle` is
/// called by the waiting thread after each poll that found nothing, with the number of such polls
/// in this wait; it may spin, arm or sleep, and must not outlive the deadline.
template <class P>
concept completion_policy = has_poll_batch<P> && tells_channel_use<P> && can_idle<P>;

}  // namespace verbena
