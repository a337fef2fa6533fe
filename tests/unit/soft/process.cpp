// SPDX-License-Identifier: BSL-1.0
#include <sys/syscall.h>

#include <fstream>

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

TEST_CASE("soft: a process whose first thread has ended lives as long as another", "[soft]") {
  static child* parent = nullptr;
  child ending{[](child& to) {
    parent = &to;
    std::thread{[] {
      parent->hear();
      ::_exit(0);
    }}.detach();
    parent->say(static_cast<std::uint64_t>(::getpid()));
    ::syscall(SYS_exit, 0);  // the thread's, not the process's
  }};
  const auto pid = static_cast<std::uint32_t>(ending.hear());
  const auto is_zombie = [&] {
    std::ifstream from{"/proc/" + std::to_string(pid) + "/stat"};
    std::string line;
    std::getline(from, line);
    return line.find(") Z ") != std::string::npos;
  };
  const auto until = clock::now() + 10s;
  while (!is_zombie() && clock::now() < until) std::this_thread::sleep_for(1ms);
  REQUIRE(is_zombie());
  CHECK(soft::started(pid).value() > 0);
  ending.say(0);
  while (soft::started(pid).value() != 0 && clock::now() < until) std::this_thread::sleep_for(1ms);
  CHECK(soft::started(pid).value() == 0);  // a zombie that nobody has waited for yet
}
