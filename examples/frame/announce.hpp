// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>

#include <fmt/format.h>

#include "frame/arguments.hpp"

namespace example {

/// Says that the other program can be started now.
inline void announce(const arguments& given) {
  fmt::print("listening on {}\n", to_string(given));
  std::fflush(stdout);
}

}  // namespace example
