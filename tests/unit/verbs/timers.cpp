// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <chrono>

#include <verbena/verbs/timers.hpp>

#include "catch.hpp"

namespace verbs = verbena::verbs;
using namespace std::chrono_literals;

// IBA 9.7.5.2.8 in microseconds, by code.
constexpr std::array<long, 32> delays{655360, 10,    20,    30,     40,     60,     80,     120,
                                      160,    240,   320,   480,    640,    960,    1280,   1920,
                                      2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                      40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};

TEST_CASE("FC-14 a receiver-not-ready delay is the shortest that is long enough") {
  for (std::uint8_t code = 1; code < delays.size(); ++code) {
    const std::chrono::microseconds delay{delays[code]};
    INFO(delay.count() << " us");
    CHECK(verbs::rnr_timer_code(delay) == code);
    if (code < 31) CHECK(verbs::rnr_timer_code(delay + 1ns) == code + 1);
  }
}

TEST_CASE("FC-14 no duration means the 655 ms of code 0") {
  CHECK(verbs::rnr_timer_code(0ns) == 1);
  CHECK(verbs::rnr_timer_code(-1s) == 1);
  CHECK(verbs::rnr_timer_code(1ns) == 1);
  CHECK(verbs::rnr_timer_code(655ms) == 31);
  CHECK(verbs::rnr_timer_code(std::chrono::nanoseconds::max()) == 31);
}

TEST_CASE("FC-40 no acknowledgement timeout means for ever") {
  CHECK(verbs::ack_timeout_code(0ns) == 1);
  CHECK(verbs::ack_timeout_code(-1s) == 1);
  CHECK(verbs::ack_timeout_code(std::chrono::nanoseconds::max()) == 31);
}

TEST_CASE("FC-40 an acknowledgement timeout is the shortest that is long enough") {
  for (std::uint8_t code = 1; code <= 31; ++code) {
    const std::chrono::nanoseconds timeout{4096LL << code};
    INFO(timeout.count() << " ns");
    CHECK(verbs::ack_timeout_code(timeout) == code);
    if (code < 31) CHECK(verbs::ack_timeout_code(timeout + 1ns) == code + 1);
  }
}
