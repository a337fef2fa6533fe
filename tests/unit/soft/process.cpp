// SPDX-License-Identifier: BSL-1.0
#include <verbena/soft/process.hpp>

#include "child.hpp"
#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// The entry of a process of this one's number that started at `since`.
void enter(soft::process_entry& into, std::uint64_t since) {
  constexpr std::uint32_t owner = 1U << 8 | 1U;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  into.pid = pid;
  into.started = since;
  into.seal = soft::seal_of(owner, pid, since);
  into.owner = owner;
}

}  // namespace

TEST_CASE("soft: a process that had this one's number before it is dead", "[soft]") {
  const std::uint64_t since = soft::started(static_cast<std::uint32_t>(::getpid())).value();
  REQUIRE(since > 1);
  soft::process_entry entry{};
  enter(entry, since);
  CHECK(soft::lives(entry));
  enter(entry, since - 1);  // as the first process of a container that is started again
  CHECK_FALSE(soft::lives(entry));
}
