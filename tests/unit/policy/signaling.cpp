// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include <verbena/policy/signaling.hpp>
#include <verbena/policy/signaling/every.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

#include "catch.hpp"

namespace vb = verbena;

using vb::signaling::every;
using vb::signaling::one_in;
using vb::signaling::per_operation;

namespace {

/// What a policy does with requests of which all, or none, ask for a signal: s or u.
template <class Policy>
std::string pattern(std::uint32_t depth, int count, bool asked) {
  const std::uint16_t window = Policy::window(depth);
  std::uint16_t unsignaled = 0;
  std::string made;
  for (int i = 0; i < count; ++i) {
    made += Policy::signals(unsignaled, window, asked) ? 's' : 'u';
  }
  return made;
}

}  // namespace

TEST_CASE("every request is signaled by signaling::every") {
  CHECK(pattern<every>(128, 5, false) == "sssss");
  CHECK(pattern<every>(1, 3, true) == "sss");
}

TEST_CASE("one_in<N> signals every N-th request") {
  CHECK(pattern<one_in<4>>(128, 9, true) == "uuusuuusu");
  CHECK(pattern<one_in<1>>(128, 3, true) == "sss");
}

TEST_CASE("FC-01 one_in<N> never leaves more than half a queue unsignaled") {
  CHECK(pattern<one_in<16>>(8, 9, true) == "uuusuuusu");
  CHECK(pattern<one_in<16>>(3, 3, true) == "sss");
  CHECK(pattern<one_in<16>>(2, 3, true) == "sss");
  CHECK(pattern<one_in<16>>(1, 3, true) == "sss");
  CHECK(one_in<65535>::window(32768) == 16384);
  CHECK(one_in<16>::window(1'000'000) == 16);
}

TEST_CASE("per_operation signals what asks for it, and at least one in half a queue") {
  CHECK(pattern<per_operation>(128, 4, true) == "ssss");
  CHECK(pattern<per_operation>(8, 9, false) == "uuusuuusu");
  CHECK(pattern<per_operation>(2, 3, false) == "sss");
  CHECK(pattern<per_operation>(1, 3, false) == "sss");
}

TEST_CASE("per_operation counts from the last signaled request") {
  std::uint16_t unsignaled = 0;
  const std::uint16_t window = per_operation::window(8);
  std::string made;
  for (const bool asked : {false, false, false, true, false, false, false, false}) {
    made += per_operation::signals(unsignaled, window, asked) ? 's' : 'u';
  }
  CHECK(made == "uuusuuus");
}

TEMPLATE_TEST_CASE("FC-01 a signal comes before the queue is full, whatever requests ask for", "",
                   every, one_in<1>, one_in<3>, one_in<64>, per_operation) {
  std::mt19937 random{1};
  for (std::uint32_t depth = 1; depth <= 200; ++depth) {
    const std::uint16_t window = TestType::window(depth);
    std::uint16_t unsignaled = 0;
    std::uint32_t run = 0;
    std::uint32_t longest = 0;
    for (int i = 0; i < 1000; ++i) {
      run = TestType::signals(unsignaled, window, random() % 64 == 0) ? 0 : run + 1;
      longest = std::max(longest, run);
    }
    INFO("depth " << depth);
    REQUIRE(longest < std::max(depth / 2, 1U));
    REQUIRE(longest < depth);
  }
}
