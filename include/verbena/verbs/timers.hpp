// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

/// The codes in which queue pairs hold their timers. Durations go in, so that "0" can not mean
/// 655 ms (RNR) or for ever (acknowledgement) by accident.
namespace verbena::verbs {

/// The receiver-not-ready delay of a code; the upper bits are not looked at. Source: IBA
/// 9.7.5.2.8, the same table as in the kernel's rxe.
constexpr std::chrono::nanoseconds rnr_delay(std::uint32_t code) noexcept {
  constexpr std::array<std::uint32_t, 32> hundredths{
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds{hundredths[code & 31] * 10};
}

/// The shortest receiver-not-ready delay of at least `wanted`, at most 491.52 ms. Code 0 (655.36
/// ms) is never given.
constexpr std::uint8_t rnr_timer_code(std::chrono::nanoseconds wanted) noexcept {
  for (std::uint8_t code = 1; code < 31; ++code) {
    if (rnr_delay(code) >= wanted) return code;
  }
  return 31;
}

/// The shortest acknowledgement timeout 4.096 us * 2^code of at least `wanted`, at most code 31.
/// Code 0 (no timeout) is never given. Source: ibv_modify_qp(3).
constexpr std::uint8_t ack_timeout_code(std::chrono::nanoseconds wanted) noexcept {
  std::uint8_t code = 1;
  while (code < 31 && std::chrono::nanoseconds{std::int64_t{4096} << code} < wanted) ++code;
  return code;
}

static_assert(rnr_timer_code(std::chrono::nanoseconds{0}) == 1);
static_assert(rnr_timer_code(std::chrono::microseconds{640}) == 12);
static_assert(ack_timeout_code(std::chrono::milliseconds{67}) == 14);

}  // namespace verbena::verbs
