// SPDX-License-Identifier: BSL-1.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include <verbena/memory/buffer.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/verbs/protection_domain.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

using fabricated::call;
using fabricated::kind;
namespace vb = verbena;

namespace {

template <class T>
using inbox = vb::buffer<T, vb::grants_of<vb::remote_writable>>;

}  // namespace

TEST_CASE("FC-21 a buffer shares no page with anything else") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto mine = inbox<char>::create(domain, 10).value();
  CHECK(reinterpret_cast<std::uintptr_t>(mine.data()) % page == 0);
  CHECK(mine.size() == 10);
  CHECK(mine.size_bytes() == 10);
  // What is registered is what can be used, though the whole page is the buffer's.
  CHECK(mine.native_handle()->length == 10);
}

TEST_CASE("a buffer is zeroed and counts elements") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  auto mine = inbox<std::uint32_t>::create(domain, 3000).value();
  CHECK(std::all_of(mine.begin(), mine.end(), [](std::uint32_t each) { return each == 0; }));
  CHECK(mine.size() == 3000);
  CHECK(mine.size_bytes() == 12000);
  mine[2999] = 7;
  CHECK(mine.last(1)[0] == 7);
  CHECK(mine.subspan(2990).size() == 10);
  CHECK(mine.subspan(10, 5).data() == mine.data() + 10);
  CHECK(mine.first(2).size_bytes() == 8);
}

TEST_CASE("a buffer of nothing, or of more than there can be, is refused before anything is done") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  for (const std::size_t count : {std::size_t{0}, std::numeric_limits<std::size_t>::max(),
                                  std::numeric_limits<std::size_t>::max() / 4}) {
    const auto refused = inbox<std::uint32_t>::create(domain, count);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == std::errc::invalid_argument);
    CHECK(mentions(refused.error(), std::to_string(count)));
  }
  CHECK(adapter.count(call::reg_mr) == 0);
}

TEST_CASE("a buffer that memory does not suffice for says how many bytes") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const std::size_t count = std::size_t{1} << 60;
  const auto refused = inbox<char>::create(domain, count);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::not_enough_memory);
  CHECK(mentions(refused.error(), std::to_string(count)));
}

TEST_CASE("FC-20 a buffer that can not be registered leaves nothing behind") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  adapter.registration_limit = 4096;
  const auto refused = inbox<char>::create(domain, 2 << 20);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::not_enough_memory);
  CHECK(mentions(refused.error(), "2097152 bytes"));
  CHECK(adapter.live(kind::region) == 0);
  CHECK(inbox<char>::create(domain, 4096).has_value());
}

TEST_CASE("views of a buffer stay valid when it is moved") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  auto first = inbox<char>::create(domain, 100).value();
  const auto view = first.view();
  const auto second = std::move(first);
  CHECK(second.data() == view.data());
  CHECK(second.view().key() == view.key());
  CHECK(first.size() == 0);  // NOLINT(bugprone-use-after-move)
  CHECK(first.native_handle() == nullptr);
  CHECK(first.close().has_value());
}

TEST_CASE("FC-22 the memory of a buffer goes after its registration") {
  // Large enough that giving it back unmaps it, which the adapter notices.
  constexpr std::size_t large = 4 << 20;
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  SECTION("when it is destroyed") { const auto mine = inbox<char>::create(domain, large).value(); }
  SECTION("when it is closed") {
    auto mine = inbox<char>::create(domain, large).value();
    REQUIRE(mine.close().has_value());
    CHECK(mine.size() == 0);
  }
  SECTION("when another takes its place") {
    auto first = inbox<char>::create(domain, large).value();
    auto second = inbox<char>::create(domain, 16).value();
    first = std::move(second);
    CHECK(first.size() == 16);
    CHECK(adapter.live(kind::region) == 1);
  }
  CHECK(adapter.take_violations().empty());
}

TEST_CASE("FC-22 a buffer that can not be deregistered keeps its memory") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  auto mine = inbox<char>::create(domain, 100).value();
  adapter.refuse.add(call::dereg_mr, EBUSY);
  CHECK(mine.close().error() == std::errc::device_or_resource_busy);
  REQUIRE(mine.size() == 100);
  mine[99] = 1;
  CHECK(mine.close().has_value());
}

TEST_CASE("FC-22 a buffer that goes before its requests leaves its memory to them") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  auto domain = vb::verbs::protection_domain::create(opened).value();
  vb::work_queue_positions queue{.capacity = 8};
  domain.lingering().add(queue);
  auto mine = inbox<char>::create(domain, 100).value();
  char* const memory = mine.data();
  queue.post(1);
  const std::string_view how = GENERATE("destroyed", "closed", "replaced");
  CAPTURE(how);
  if (how == "replaced") {
    mine = inbox<char>::create(domain, 16).value();
    CHECK(mine.size() == 16);
    queue.post(1);
  }
  if (how == "closed") {
    REQUIRE(mine.close().has_value());
    CHECK(mine.size() == 0);
    CHECK(mine.close().has_value());
  } else {
    const auto gone = std::move(mine);
  }
  CHECK(adapter.live(kind::region) >= 1);
  memory[99] = 1;
  CHECK(domain.close().error() == std::errc::device_or_resource_busy);
  queue.retire(static_cast<std::uint16_t>(queue.posted - 1));

  SECTION("and the next one made takes it back") {
    const auto next = inbox<char>::create(domain, 1).value();
    CHECK(adapter.live(kind::region) == 1);
  }
  SECTION("and the end of the domain takes it back") {
    CHECK(domain.close().has_value());
    CHECK(adapter.live(kind::region) == 0);
  }
}
