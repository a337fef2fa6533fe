// SPDX-License-Identifier: BSL-1.0
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <verbena/connection/queue_pair_table.hpp>

#include "catch.hpp"

namespace vb = verbena;

TEST_CASE("queue pair table: finds whoever is in it, whatever their numbers have in common") {
  constexpr std::uint32_t most = 16;
  std::vector<vb::queue_pair_state> states(most);
  vb::queue_pair_table table{most};
  std::map<std::uint32_t, vb::queue_pair_state*> in;
  std::mt19937 engine{7};
  const auto random = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(engine() % below);
  };
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    // Many share their last bits, some are as far apart as numbers are.
    const std::uint32_t number = random(8) * 32 + random(3) + random(2) * 0xff'fe00;
    const auto found = in.find(number);
    if (found != in.end()) {
      table.remove(number);
      in.erase(found);
    } else if (in.size() < most) {
      in[number] = &states[random(most)];
      table.add(number, *in[number]);
    }
    table.remove(0x12'3456);  // that nobody has
    for (const auto& [each, state] : in) REQUIRE(table.find(each) == state);
    REQUIRE(table.find(0x12'3456) == nullptr);
  }
  table.fail(vb::status::fatal);
  for (const auto& [each, state] : in) CHECK(state->broken());
}
