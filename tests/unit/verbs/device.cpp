// SPDX-License-Identifier: BSL-1.0
#include "fabricated/device.hpp"

#include <cerrno>
#include <utility>

#include <verbena/verbs/device.hpp>
#include <verbena/verbs/protection_domain.hpp>

#include "catch.hpp"
#include "mentions.hpp"

using fabricated::call;
using fabricated::kind;
namespace verbs = verbena::verbs;

TEST_CASE("a device that can not be queried is closed again") {
  fabricated::device adapter{"mute0"};
  adapter.refuse.add(call::query_device, EIO);
  const auto opened = adapter.adopt();
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error() == std::errc::io_error);
  CHECK(mentions(opened.error(), "mute0"));
  CHECK(adapter.live(kind::device) == 0);
}

TEST_CASE("a port that is not there is named, with how many there are") {
  fabricated::device adapter{"dual0"};
  adapter.ports.resize(2);
  const verbs::device opened = adapter.open();
  REQUIRE(opened.port(2).has_value());
  const auto third = opened.port(3);
  REQUIRE_FALSE(third.has_value());
  CHECK(third.error() == std::errc::invalid_argument);
  CHECK(mentions(third.error(), "port 3 of dual0, which has 2"));
}

TEST_CASE("FC-32 GIDs are read past holes and entries that can not be read") {
  fabricated::device adapter;
  auto& port = adapter.ports[0];
  port.gids.assign(10, std::nullopt);
  port.gids[6] = fabricated::roce_v1("::ffff:10.1.2.3");
  port.gids[9] = fabricated::roce_v2("::ffff:10.1.2.3");
  port.holes_are_zero = GENERATE(false, true);
  const verbs::device opened = adapter.open();
  const auto gids = opened.gids(1).value();
  REQUIRE(gids.size() == 2);
  CHECK(gids[0].gid_index == 6);
  CHECK(gids[0].gid_type == IBV_GID_TYPE_ROCE_V1);
  CHECK(gids[1].gid_index == 9);

  adapter.refuse.add(call::query_gid, EIO, 1, 6);
  CHECK(opened.gids(1).value().size() == 1);
}

TEST_CASE("FC-32 the GIDs of a port that is not there are an error, not none") {
  fabricated::device adapter;
  const verbs::device opened = adapter.open();
  CHECK_FALSE(opened.gids(2).has_value());
}

TEST_CASE("a device with objects stays open when it is closed") {
  fabricated::device adapter;
  verbs::device opened = adapter.open();
  verbs::protection_domain domain = verbs::protection_domain::create(opened).value();
  const auto refused = opened.close();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::device_or_resource_busy);
  CHECK(adapter.count(call::close_device) == 0);
  CHECK(opened.name() == "fabricated0");

  REQUIRE(domain.close().has_value());
  CHECK(opened.close().has_value());
  CHECK(adapter.live(kind::device) == 0);
  CHECK(opened.close().has_value());
  CHECK(opened.name() == "(closed)");
  CHECK(opened.native_handle() == nullptr);
}

TEST_CASE("FC-22 a device that could not be closed can be closed again") {
  fabricated::device adapter;
  verbs::device opened = adapter.open();
  adapter.refuse.add(call::close_device, EBUSY);
  const auto refused = opened.close();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::device_or_resource_busy);
  CHECK(mentions(refused.error(), "device"));
  CHECK(adapter.live(kind::device) == 1);
  CHECK(opened.close().has_value());
  CHECK(adapter.live(kind::device) == 0);
}

TEST_CASE("FC-22 a moved-from device is inert") {
  fabricated::device adapter;
  verbs::device first = adapter.open();
  verbs::device second = std::move(first);
  CHECK(first.native_handle() == nullptr);  // NOLINT(bugprone-use-after-move)
  CHECK(first.name() == "(closed)");
  CHECK(first.close().has_value());
  CHECK(adapter.live(kind::device) == 1);
  first = std::move(second);
  CHECK(first.name() == "fabricated0");
  CHECK(adapter.count(call::close_device) == 0);
}

TEST_CASE("iWARP is told by the transport, not by the name") {
  fabricated::device adapter{"ib0", IBV_TRANSPORT_IWARP};
  CHECK(adapter.open().is_iwarp());
  fabricated::device other{"iwarp0"};
  CHECK_FALSE(other.open().is_iwarp());
}
