// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <set>
#include <utility>

#include <verbena/verbs/protection_domain.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

using fabricated::call;
namespace verbs = verbena::verbs;

TEST_CASE("FC-19 no two protection domains have the same id, and none has 0") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 100; ++i) {
    const auto domain = verbs::protection_domain::create(opened).value();
    CHECK(domain.id() != 0);
    CHECK(ids.insert(domain.id()).second);
  }
}

TEST_CASE("a protection domain keeps its id when it moves and when it is shared") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  auto domain = verbs::protection_domain::create(opened).value();
  const std::uint32_t id = domain.id();
  const auto shared = domain.share();
  const auto moved = std::move(domain);
  CHECK(shared.id() == id);
  CHECK(moved.id() == id);
  CHECK(domain.id() == 0);  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("a protection domain that can not be made names the device") {
  fabricated::device adapter{"full0"};
  const auto opened = adapter.open();
  adapter.refuse.add(call::alloc_pd, ENOMEM);
  const auto refused = verbs::protection_domain::create(opened);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::not_enough_memory);
  CHECK(mentions(refused.error(), "full0"));
}
