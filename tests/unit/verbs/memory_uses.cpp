// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <verbena/memory/registration.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>

#include "catch.hpp"
#include "end_of.hpp"
#include "fabricated/workbench.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;

namespace {

using own_memory = vb::registration<char, vb::grants_of<vb::sink>>;

struct own_bench : workbench<> {
  std::array<char, 64> memory_{};
  std::optional<own_memory> mine = own_memory::create(domain, std::span{memory_}).value();
};

}  // namespace

TEST_CASE("FC-22 memory of the program's own that goes before its requests ends a debug build") {
#ifdef NDEBUG
  SUCCEED("assertions are off");
#else
  own_bench test;
  SECTION("sent") { REQUIRE(test.link.post(vb::send(*test.mine))); }
  SECTION("received") { REQUIRE(test.link.post(vb::receive(*test.mine))); }
  SECTION("as one piece of a chain") {
    REQUIRE(test.link.post(test.message(), vb::send(vb::pieces{test.memory.first(3), *test.mine})));
    test.adapter.complete_sends(test.link.native(), 1);
    CHECK(test.drain() == 1);
  }
  const auto [status, said] = end_of([&] { test.mine.reset(); });
  CHECK(WIFSIGNALED(status));
  CHECK(mentions(said, "is let go while 1 pieces of requests that have not completed lie in it"));

  test.adapter.complete_all(test.link.native());
  CHECK(test.drain() != 0);
  test.mine.reset();
#endif
}

TEST_CASE("FC-22 memory goes as it likes when its requests have completed or never entered") {
  own_bench test;
  REQUIRE(test.link.post(vb::send(*test.mine), vb::send(*test.mine)));
  test.adapter.complete_all(test.link.native());
  CHECK(test.drain() == 2);
  test.adapter.refuse.add(call::post_send, EINVAL);
  CHECK_FALSE(test.link.post(vb::send(*test.mine)));
  REQUIRE(test.link.post(test.message()));  // at the same position
  const auto [status, said] = end_of([&] { test.mine.reset(); });
  CHECK(status == 0);
  CHECK(said == "");
  test.adapter.complete_all(test.link.native());
  CHECK(test.drain() == 1);
}
