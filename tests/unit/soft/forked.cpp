// SPDX-License-Identifier: BSL-1.0
#include <sys/wait.h>

#include "child.hpp"
#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft: a forked process that closes its copy of a device leaves that alone", "[soft]") {
  const std::string name = fabric_name();
  std::optional<verbena::verbs::device> device{verbena::verbs::open(name).value()};
  const pid_t child = ::fork();
  if (child == 0) {
    device.reset();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const auto& fabric = *context::of(device->native_handle()).fabric;
  CHECK(::access(fabric.path().c_str(), F_OK) == 0);
  const auto& entry = fabric.shared().processes[verbena::soft::place_of(fabric.me())];
  CHECK(entry.owner == fabric.me());
  const side joins{name};  // the same fabric, not another of its name
  CHECK(context::of(joins.native).fabric->identity() == fabric.identity());
}
