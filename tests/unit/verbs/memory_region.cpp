// SPDX-License-Identifier: BSL-1.0
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <string>

#include <verbena/verbs/memory_region.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

using fabricated::call;
using fabricated::kind;
namespace verbs = verbena::verbs;

TEST_CASE("FC-20 a registration that runs out of locked memory says size and limit") {
  fabricated::device adapter{"tight0"};
  const auto opened = adapter.open();
  const auto domain = verbs::protection_domain::create(opened).value();
  std::array<char, 2000> memory{};
  adapter.registration_limit = 1999;
  const auto refused = verbs::memory_region::create(domain, memory.data(), memory.size(), 0);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::not_enough_memory);
  CHECK(mentions(refused.error(), "2000 bytes on tight0"));
  CHECK(mentions(refused.error(), "ulimit -l"));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  CHECK(mentions(refused.error(), limit.rlim_cur == RLIM_INFINITY
                                      ? std::string{"unlimited"}
                                      : std::to_string(limit.rlim_cur) + " bytes, see"));

  // Nothing is left half done, and the domain is as good as before.
  CHECK(adapter.live(kind::region) == 0);
  CHECK(verbs::memory_region::create(domain, memory.data(), 1999, 0).has_value());
}

TEST_CASE("FC-20 a provider that refuses without an errno is out of memory") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = verbs::protection_domain::create(opened).value();
  std::array<char, 64> memory{};
  adapter.refuse.add(call::reg_mr, 0);
  errno = EPIPE;  // of something earlier
  const auto refused = verbs::memory_region::create(domain, memory.data(), memory.size(), 0);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::not_enough_memory);
}

TEST_CASE("FC-21 an EINVAL of a registration hints at huge pages") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = verbs::protection_domain::create(opened).value();
  std::array<char, 64> memory{};
  adapter.refuse.add(call::reg_mr, EINVAL);
  const auto refused = verbs::memory_region::create(domain, memory.data(), memory.size(), 0);
  REQUIRE_FALSE(refused.has_value());
  CHECK(mentions(refused.error(), "huge pages"));
  CHECK_FALSE(mentions(refused.error(), "ulimit"));
}
