// SPDX-License-Identifier: BSL-1.0
#include <fstream>
#include <string>
#include <vector>

#include <verbena/soft/knobs.hpp>

#include "../../catch.hpp"

namespace soft = verbena::soft;

namespace {

std::string row_of(const soft::knob_description& each) {
  const soft::knobs fresh;
  const std::string possible =
      each.most == ~0U ? "from " + std::to_string(each.least)
                       : std::to_string(each.least) + " to " + std::to_string(each.most);
  std::string row = "| `";
  row.append(each.name).append("` | ").append(each.unit).append(" | ");
  row.append(std::to_string((fresh.*each.member).load())).append(" | ").append(possible);
  return row.append(" | ").append(each.effect).append(" |");
}

}  // namespace

TEST_CASE("soft knobs: the documentation's table is the one in the code", "[soft][knobs]") {
  std::ifstream page{VERBENA_SOFTWARE_DEVICE_PAGE};
  REQUIRE(page);
  std::vector<std::string> documented;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "| knob | unit | default | possible | effect |") {
      inside = true;
    } else if (inside && line.rfind("| `", 0) == 0) {
      documented.push_back(line);
    } else if (inside && line.rfind("|---", 0) != 0) {
      inside = false;
    }
  }
  std::vector<std::string> rows;
  for (const soft::knob_description& each : soft::knob_table) rows.push_back(row_of(each));
  CHECK(documented == rows);
}
