// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

namespace verbena {

/// The point in time `timeout` from now, at once for a negative one; the last one there is where
/// that is too far away, so that nanoseconds::max() waits without end.
inline std::chrono::steady_clock::time_point deadline_after(
    std::chrono::nanoseconds timeout) noexcept {
  using clock = std::chrono::steady_clock;
  const clock::time_point now = clock::now();
  if (timeout <= timeout.zero()) return now;
  return timeout < clock::time_point::max() - now ? now + timeout : clock::time_point::max();
}

}  // namespace verbena
