// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include <verbena/policy/errors/handled_by.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/errors/terminating.hpp>
#include <verbena/policy/errors/throwing.hpp>

#include "catch.hpp"
#include "end_of.hpp"

namespace vb = verbena;

namespace {

vb::result<int> good() { return 7; }
vb::result<int> bad() { return vb::error{vb::errc::capacity, "asked for 9, allowed 8"}; }

int handled = 0;
std::string last_message;
struct remember {
  void operator()(const vb::error& value) const {
    ++handled;
    last_message = value.message();
  }
};

}  // namespace

TEST_CASE("errors::throwing gives values and throws the whole sentence") {
  CHECK(vb::errors::throwing::deliver(good()) == 7);
  try {
    (void)vb::errors::throwing::deliver(bad());
    FAIL("no exception");
  } catch (const vb::failure& thrown) {
    CHECK(thrown.code() == vb::errc::capacity);
    CHECK(std::string{thrown.what()} == "asked for 9, allowed 8: capacity exceeded");
  }
}

TEST_CASE("errors::returning gives the result itself") {
  CHECK(vb::errors::returning::deliver(good()).value() == 7);
  const vb::result<int> returned = vb::errors::returning::deliver(bad());
  REQUIRE_FALSE(returned);
  CHECK(returned.error() == vb::errc::capacity);
}

TEST_CASE("errors::handled_by tells its function once, then returns") {
  using policy = vb::errors::handled_by<remember>;
  handled = 0;
  CHECK(policy::deliver(good()).value() == 7);
  CHECK(handled == 0);
  const vb::result<int> returned = policy::deliver(bad());
  REQUIRE_FALSE(returned);
  CHECK(handled == 1);
  CHECK(last_message == "asked for 9, allowed 8: capacity exceeded");
}

TEST_CASE("errors::terminating prints the sentence and aborts") {
  const auto [status, said] = end_of([] { (void)vb::errors::terminating::deliver(bad()); });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(said == "verbena: asked for 9, allowed 8: capacity exceeded\n");
}
