// SPDX-License-Identifier: BSL-1.0
#include <sys/timerfd.h>

#include <atomic>

#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

TEST_CASE("soft: a channel's timer that two threads set goes off at the earliest", "[soft]") {
  side on{fabric_name()};
  ibv_comp_channel* const wakes = on.calls.create_comp_channel(on.native);
  REQUIRE(wakes != nullptr);
  soft::channel& of = soft::channel::of(wakes);
  constexpr std::int64_t minute = 60'000'000'000;
  constexpr int rounds = 50'000;
  const auto until = clock::now() + 500ms;
  const std::int64_t soon = soft::now_ns() + 100 * minute;
  const auto is_set_for = [&] {
    itimerspec left{};
    REQUIRE(::timerfd_gettime(of.timer, &left) == 0);
    return soft::now_ns() + left.it_value.tv_sec * 1'000'000'000 + left.it_value.tv_nsec;
  };
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::thread other{[&] {
    for (int round = 1; round <= rounds && clock::now() < until; ++round) {
      while (begun < round && clock::now() < until) {
      }
      soft::set_timer(of, soon);
      ended = round;
    }
  }};
  int late = 0;
  for (int round = 1; round <= rounds && clock::now() < until; ++round) {
    soft::clear_timer(of);
    begun = round;
    soft::set_timer(of, soon + 2 * minute);
    while (ended < round && clock::now() < until) {
    }
    if (ended == round && is_set_for() > soon + minute) ++late;
  }
  other.join();
  CHECK(late == 0);
  on.calls.destroy_comp_channel(wakes);
}
