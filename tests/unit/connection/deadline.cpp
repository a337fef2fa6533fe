// SPDX-License-Identifier: BSL-1.0
#include <chrono>

#include <verbena/connection/deadline.hpp>

#include "catch.hpp"

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

TEST_CASE("FC-40 a deadline is the timeout from now, and never wraps around") {
  const auto before = steady::now();
  const auto soon = verbena::deadline_after(1s);
  CHECK(soon >= before + 1s);
  CHECK(soon <= steady::now() + 1s);
  for (const auto negative :
       {-1ns, std::chrono::nanoseconds{-1s}, std::chrono::nanoseconds::min()}) {
    const auto over = verbena::deadline_after(negative);
    CHECK(over <= steady::now());
  }
  CHECK(verbena::deadline_after(std::chrono::nanoseconds::max()) == steady::time_point::max());
  CHECK(verbena::deadline_after(std::chrono::nanoseconds::max() - 1ns) ==
        steady::time_point::max());
}
