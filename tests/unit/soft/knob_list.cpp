// SPDX-License-Identifier: BSL-1.0
#include <cstdlib>
#include <string>
#include <string_view>

#include <verbena/soft.hpp>
#include <verbena/soft/knob_list.hpp>

#include "../../catch.hpp"
#include "../../mentions.hpp"

namespace soft = verbena::soft;

namespace {

std::string complaint(std::string_view list) {
  soft::knobs into;
  const auto set = soft::set_knobs(into, list, "VERBENA_SOFT");
  REQUIRE(!set);
  CHECK(set.error() == std::errc::invalid_argument);
  return set.error().message();
}

/// Sets VERBENA_SOFT as long as it lives.
struct environment {
  explicit environment(const char* list) { ::setenv("VERBENA_SOFT", list, 1); }
  ~environment() { ::unsetenv("VERBENA_SOFT"); }
};

const soft::knobs& knobs_of(const verbena::verbs::device& device) {
  return soft::context::of(device.native_handle()).knobs;
}

}  // namespace

TEST_CASE("soft knobs: every knob of the table can be set by its name", "[soft][knobs]") {
  for (const soft::knob_description& each : soft::knob_table) {
    for (const std::uint32_t value : {each.least, each.most}) {
      soft::knobs into;
      const std::string list = std::string{each.name} + "=" + std::to_string(value);
      INFO(list);
      REQUIRE(soft::set_knobs(into, list, "test"));
      CHECK(into.*each.member == value);
    }
    const soft::knobs fresh;
    CHECK((fresh.*each.member >= each.least && fresh.*each.member <= each.most));
    for (const soft::knob_description& other : soft::knob_table)
      CHECK((&other == &each) == (other.member == each.member));
  }
}

TEST_CASE("soft knobs: a list sets several, the last word counts", "[soft][knobs]") {
  soft::knobs into;
  REQUIRE(soft::set_knobs(into, "drop_message=3,iwarp=1,drop_message=5", "test"));
  CHECK(into.drop_message == 5);
  CHECK(into.iwarp == 1);
  CHECK(into.faults == 1);
  REQUIRE(soft::set_knobs(into, "", "test"));
}

TEST_CASE("soft knobs: what is wrong with a list is told", "[soft][knobs]") {
  CHECK(mentions(complaint("drop_mesage=3"), "\"drop_mesage\""));
  CHECK(mentions(complaint("drop_mesage=3"), "drop_message"));
  CHECK(mentions(complaint("drop_mesage=3"), "VERBENA_SOFT"));
  CHECK(mentions(complaint("iwarp=1,mtu=9"), "mtu can not be \"9\", but 1 to 5 (`ibv_mtu`)"));
  for (const char* each :
       {"mtu", "mtu=", "mtu=-1", "mtu=0x3", "mtu= 3", "mtu=3 ", "mtu=3.5", "mtu=3,", ",mtu=3",
        "mtu=3,,iwarp=1", "=3", "mtu=99999999999", "MTU=3", " mtu=3", "mtu=3;iwarp=1", "iwarp=2"}) {
    INFO(each);
    CHECK_FALSE(complaint(each).empty());
  }
}

TEST_CASE("soft knobs: counted down once by as many threads as there are", "[soft][knobs]") {
  soft::knobs on;
  on.drop_message = 3;
  CHECK(on.faults == 1);
  CHECK_FALSE(on.drop_message.is_nth());
  CHECK_FALSE(on.drop_message.is_nth());
  CHECK(on.drop_message.is_nth());
  CHECK_FALSE(on.drop_message.is_nth());
  CHECK(on.faults == 0);
  on.drop_message = 2;
  on.drop_message = 0;
  CHECK(on.faults == 0);
}

TEST_CASE("soft knobs: from the environment and from the device's name", "[soft][knobs]") {
  const environment set{"mtu=2,max_sge=5"};
  auto opened = verbena::verbs::open("soft:t-knob-list,mtu=3,iwarp=1");
  REQUIRE(opened);
  CHECK(knobs_of(opened.value()).mtu == 3);
  CHECK(knobs_of(opened.value()).max_sge == 5);
  CHECK(opened.value().attributes().max_sge == 5);
  CHECK(opened.value().is_iwarp());
  CHECK(opened.value().name() == "soft:t-knob-list");
  auto other = verbena::verbs::open("soft:t-knob-list");
  REQUIRE(other);
  CHECK(knobs_of(other.value()).mtu == 2);
  CHECK_FALSE(other.value().is_iwarp());
}

TEST_CASE("soft knobs: a device is not opened with a list that is wrong", "[soft][knobs]") {
  const environment set{"mtu=3,speed=9"};
  auto opened = verbena::verbs::open("soft:t-knob-list-2");
  REQUIRE(!opened);
  CHECK(mentions(opened.error().message(), "VERBENA_SOFT"));
  CHECK(mentions(opened.error().message(), "\"speed\""));
  ::unsetenv("VERBENA_SOFT");
  auto named = verbena::verbs::open("soft:t-knob-list-2,speed=9");
  REQUIRE(!named);
  CHECK(mentions(named.error().message(), "soft:t-knob-list-2"));
}
