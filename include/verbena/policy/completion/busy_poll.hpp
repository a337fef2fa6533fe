// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>

#include <verbena/policy/completion.hpp>

namespace verbena::completion {

/// Waits by polling: the lowest latency, for the price of a core. Takes 16 completions at a time.
struct busy_poll {
  static constexpr int batch = 16;
  static constexpr bool uses_channel = false;

  static awake idle(completion_waiter& waiter, std::uint32_t empty_polls,
                    std::chrono::steady_clock::time_point deadline) noexcept {
    if (waiter.stopped()) return awake::stopped;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    // Reading the clock costs as much as an empty poll.
    constexpr std::uint32_t clock_every = 64;
    if (empty_polls % clock_every == 0 && std::chrono::steady_clock::now() >= deadline) {
      return awake::timed_out;
    }
    return awake::look_again;
  }
};

static_assert(completion_policy<busy_poll>);

}  // namespace verbena::completion
