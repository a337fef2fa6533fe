// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mentions.hpp"
#include "child.hpp"
#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft: a queue pair's number leads nowhere on another fabric", "[soft]") {
  side here{fabric_name()};
  side there{fabric_name()};
  side elsewhere{there.device.name()};
  end one{here};
  end same_number{there};  // as it would be if fabrics counted alike
  end other{elsewhere};
  one.connect(other.pair->qp_num);
  same_number.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  REQUIRE(same_number.receive(1, {there.piece(0, 8)}) == 0);
  REQUIRE(other.send(2, {elsewhere.piece(0, 8)}) == 0);
  CHECK(status_of(other.sends, 2) == IBV_WC_RETRY_EXC_ERR);
  CHECK(same_number.pair->qp_num != one.pair->qp_num);
}

TEST_CASE("soft: a process of another PID namespace is told why it can not join", "[soft]") {
  const std::string fabric = fabric_name();
  child other{[&](child& parent) {
    parent.hear();
    if (::unshare(CLONE_NEWPID) != 0) return parent.say(2);
    const pid_t inside = ::fork();  // the first there
    if (inside == 0) {
      auto opened = verbena::verbs::open(fabric);
      const bool refused = !opened && opened.error() == verbena::errc::mismatch &&
                           mentions(opened.error(), "PID namespace");
      ::_exit(refused ? 1 : 0);
    }
    int status = 0;
    ::waitpid(inside, &status, 0);
    parent.say(static_cast<std::uint64_t>(WEXITSTATUS(status)));
  }};
  const side here{fabric};
  other.say(0);
  const std::uint64_t said = other.hear();
  if (said == 2) {
    WARN("skipped: this user may make no PID namespace");
    return;
  }
  CHECK(said == 1);
}
