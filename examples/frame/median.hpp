// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace example {

/// The middle one of these times in microseconds, such as "1.7 us".
inline std::string median(std::vector<std::chrono::nanoseconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return fmt::format("{:.1f} us", std::chrono::duration<double, std::micro>{*middle}.count());
}

}  // namespace example
