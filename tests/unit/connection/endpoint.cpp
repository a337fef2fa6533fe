// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/policy/errors/returning.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using namespace std::chrono_literals;
using fabricated::call;
using fabricated::kind;
using vb::errors::returning;

namespace {

using endpoint = vb::endpoint<returning>;
using queue = vb::completion_queue<vb::completion::busy_poll, returning>;

/// A device with a domain and what its queue pairs went through.
struct host {
  fabricated::device adapter;
  std::optional<vb::verbs::device> opened;
  std::optional<vb::verbs::protection_domain> domain;

  /// Opens it, once the adapter says what it shall.
  host& up() {
    opened = adapter.open();
    domain = vb::verbs::protection_domain::create(*opened).value();
    return *this;
  }
  auto make(const vb::options& asked = {}) { return endpoint::open(*domain, asked); }
};

const fabricated::queue_pair& behind(const auto& of) {
  return fabricated::machine::of(of.native_handle());
}

/// Both ends of a connection; only the first end is looked at.
struct both {
  host here;
  host there;
  vb::options mine;
  vb::options peers;

  vb::result<vb::connection<returning>> connect() {
    here.up();
    there.up();
    BOOST_OUTCOME_TRY(auto first, here.make(mine));
    BOOST_OUTCOME_TRY(auto second, there.make(peers));
    BOOST_OUTCOME_TRY(auto bytes, second.describe());
    return std::move(first).connect(bytes);
  }
};

fabricated::port infiniband_port(std::uint16_t lid, const std::string& gid) {
  fabricated::port made;
  made.attributes.link_layer = IBV_LINK_LAYER_INFINIBAND;
  made.attributes.flags = 0;
  made.attributes.lid = lid;
  made.gids = {fabricated::infiniband(gid)};
  return made;
}

}  // namespace

TEST_CASE("FC-05 a depth the device does not allow is refused by name, with what is allowed") {
  host on;
  on.adapter.attributes.max_qp_wr = 16;
  on.adapter.attributes.max_sge = 3;
  on.up();
  struct {
    vb::options asked;
    const char* sentence;
  } const cases[] = {
      {{.send_depth = 64, .receive_depth = 8}, "send_depth 64; fabricated0 allows 1 to 16"},
      {{.send_depth = 8, .receive_depth = 17}, "receive_depth 17; fabricated0 allows 1 to 16"},
      {{.send_depth = 8, .receive_depth = 8, .send_pieces = 4},
       "send_pieces 4; fabricated0 allows 1 to 3"},
      {{.send_depth = 8, .receive_depth = 8, .receive_pieces = 4},
       "receive_pieces 4; fabricated0 allows 1 to 3"},
      {{.send_depth = 0, .receive_depth = 8}, "send_depth 0; fabricated0 allows 1 to 16"}};
  for (const auto& each : cases) {
    const auto refused = on.make(each.asked);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == vb::errc::capacity);
    INFO(refused.error().message());
    CHECK(mentions(refused.error(), each.sentence));
  }
  CHECK(on.adapter.count(call::create_qp) == 0);
  CHECK(on.make({.send_depth = 16, .receive_depth = 16}).has_value());
}

TEST_CASE("FC-05 with capacity::at_most there is what the device allows") {
  host on;
  on.adapter.attributes.max_qp_wr = 16;
  on.up();
  const auto made =
      on.make({.send_depth = 64, .receive_depth = 8, .capacity = vb::capacity::at_most}).value();
  CHECK(made.granted().max_send_wr == 16);
  CHECK(made.granted().max_recv_wr == 8);
  CHECK(made.attached().state().sends.capacity == 16);
}

TEST_CASE("FC-05 depths that no completion queue holds together are lowered or refused") {
  host on;
  on.adapter.attributes.max_cqe = 20;
  on.up();
  const auto refused = on.make({.send_depth = 16, .receive_depth = 8});
  CHECK(refused.error() == vb::errc::capacity);
  CHECK(mentions(refused.error(), "send_depth 16 and receive_depth 8"));
  CHECK(mentions(refused.error(), "fabricated0 holds 20"));
  const auto granted = [&](std::uint32_t sends, std::uint32_t receives) {
    const auto made = on.make(
        {.send_depth = sends, .receive_depth = receives, .capacity = vb::capacity::at_most});
    const auto& state = made.value().attached().state();
    return std::pair{state.sends.capacity, state.receives.capacity};
  };
  CHECK(granted(16, 8) == std::pair{12U, 8U});
  CHECK(granted(4, 90) == std::pair{4U, 16U});
  CHECK(granted(90, 90) == std::pair{10U, 10U});
  CHECK(granted(90, 1) == std::pair{19U, 1U});
}

TEST_CASE("an MTU that is none of the enumerators is named") {
  host on;
  on.up();
  for (const unsigned wrong : {0U, 6U, 200U}) {
    const auto refused = on.make({.max_mtu = static_cast<vb::mtu>(wrong)});
    CHECK(refused.error() == std::errc::invalid_argument);
    CHECK(mentions(refused.error(), "max_mtu " + std::to_string(wrong)));
  }
}

TEST_CASE("FC-05 more than was asked is used when it was granted") {
  host on;
  on.adapter.grant = [](ibv_qp_cap& cap) { cap.max_send_wr = 32; };
  on.up();
  auto made = on.make({.send_depth = 20, .receive_depth = 4}).value();
  CHECK(made.granted().max_send_wr == 32);
  CHECK(made.attached().state().sends.capacity == 32);
}

TEST_CASE("FC-05 more than was granted is never used") {
  host on;
  on.adapter.grant = [](ibv_qp_cap& cap) { cap.max_recv_wr = 10; };
  on.up();
  const auto refused = on.make({.send_depth = 20, .receive_depth = 20});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::capacity);
  CHECK(mentions(refused.error(), "receive_depth 20; fabricated0 granted 10"));
  CHECK(on.adapter.live(kind::queue_pair) == 0);

  auto made =
      on.make({.send_depth = 20, .receive_depth = 20, .capacity = vb::capacity::at_most}).value();
  CHECK(made.attached().state().receives.capacity == 10);
}

TEST_CASE("FC-08 a shared completion queue holds all that is granted to those on it") {
  host on;
  on.up();
  const auto shared = queue::open(*on.opened, {40, 4}).value();
  const vb::options asked{.send_depth = 8, .receive_depth = 8};
  const auto first = endpoint::open(*on.domain, shared, asked).value();
  auto second = endpoint::open(*on.domain, shared, asked);
  CHECK(second.has_value());
  const auto third = endpoint::open(*on.domain, shared, asked);
  REQUIRE_FALSE(third.has_value());
  CHECK(third.error() == vb::errc::capacity);
  CHECK(on.adapter.live(kind::queue_pair) == 2);
  second = vb::error{vb::errc::stopped, "gone"};
  CHECK(endpoint::open(*on.domain, shared, asked).has_value());
}

TEST_CASE(
    "FC-08 a grant that the completion queue has no room for is used as far as it was asked") {
  host on;
  on.adapter.grant = [](ibv_qp_cap& cap) { cap.max_send_wr = 64; };
  on.up();
  const auto shared = queue::open(*on.opened, {20, 1}).value();
  const auto made =
      endpoint::open(*on.domain, shared, {.send_depth = 10, .receive_depth = 10}).value();
  CHECK(made.attached().state().sends.capacity == 10);
}

TEST_CASE("FC-13 receives are with the adapter before the peer can send") {
  host on;
  on.up();
  auto made = on.make().value();
  const auto memory = fabricated::memory(*on.domain);
  CHECK(made.post(vb::receive(memory.first(8)), vb::receive(memory.last(8))));
  CHECK(behind(made).qp_base.state == IBV_QPS_INIT);
  CHECK(behind(made).receives.posted.size() == 2);
}

TEST_CASE("a port that is not up is an error when an endpoint is made on it") {
  host on;
  on.adapter.ports[0].attributes.state = IBV_PORT_DOWN;
  on.up();
  const auto refused = on.make();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::network_down);
  CHECK(mentions(refused.error(), "port 1 of fabricated0"));
  CHECK_FALSE(on.make({.port = 2}).has_value());
  CHECK(on.adapter.live(kind::queue_pair) == 0);
}

TEST_CASE("an endpoint that can not be made leaves nothing, at whatever step that was") {
  host on;
  on.up();
  for (const call each : {call::query_port, call::create_cq, call::create_qp, call::modify_qp}) {
    on.adapter.refuse.add(each, EIO);
    const auto refused = on.make();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == std::errc::io_error);
    CHECK(on.adapter.live(kind::queue_pair) == 0);
    CHECK(on.adapter.live(kind::completion_queue) == 0);
  }
  CHECK(on.make().has_value());
}

TEST_CASE("FC-17 what the queue pair lets the peer do follows from the regions described") {
  host on;
  on.up();
  auto made = on.make().value();
  const auto readable =
      vb::buffer<char, vb::grants_of<vb::remote_readable>>::create(*on.domain, 64).value();
  const auto atomic =
      vb::buffer<std::uint64_t, vb::grants_of<vb::remote_atomic>>::create(*on.domain, 1).value();
  const auto allows = [&](unsigned access) {
    return (static_cast<unsigned>(behind(made).attributes.qp_access_flags) & access) != 0;
  };
  REQUIRE(made.describe().has_value());
  CHECK_FALSE(allows(IBV_ACCESS_REMOTE_READ));
  CHECK_FALSE(allows(IBV_ACCESS_REMOTE_ATOMIC));
  REQUIRE(made.describe(readable).has_value());
  CHECK(allows(IBV_ACCESS_REMOTE_READ));
  CHECK_FALSE(allows(IBV_ACCESS_REMOTE_ATOMIC));
  REQUIRE(made.describe(readable, atomic).has_value());
  CHECK(allows(IBV_ACCESS_REMOTE_READ));
  CHECK(allows(IBV_ACCESS_REMOTE_ATOMIC));
}

TEST_CASE(
    "FC-41 descriptors on iWARP are not supported, by its transport and before any transition") {
  fabricated::device adapter{"siw9", IBV_TRANSPORT_IWARP};
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  auto made = endpoint::open(domain).value();
  const auto refused = made.describe();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::not_supported);
  CHECK(mentions(refused.error(), "siw9"));
}

TEST_CASE("FC-33 the MTU is the least of port, peer and what is wanted") {
  both ends;
  SECTION("all the same") {
    CHECK(behind(ends.connect().value()).attributes.path_mtu == IBV_MTU_4096);
  }
  SECTION("the peer's port") {
    ends.there.adapter.ports[0].attributes.active_mtu = IBV_MTU_1024;
    CHECK(behind(ends.connect().value()).attributes.path_mtu == IBV_MTU_1024);
  }
  SECTION("this port") {
    ends.here.adapter.ports[0].attributes.active_mtu = IBV_MTU_512;
    CHECK(behind(ends.connect().value()).attributes.path_mtu == IBV_MTU_512);
  }
  SECTION("what this end wants") {
    ends.mine.max_mtu = vb::mtu::bytes_256;
    CHECK(behind(ends.connect().value()).attributes.path_mtu == IBV_MTU_256);
  }
  SECTION("what the peer wants") {
    ends.peers.max_mtu = vb::mtu::bytes_2048;
    CHECK(behind(ends.connect().value()).attributes.path_mtu == IBV_MTU_2048);
  }
}

TEST_CASE("reads in flight are what both ends and both devices can do") {
  both ends;
  ends.mine.reads_asked = 12;
  ends.mine.reads_answered = 3;
  ends.peers.reads_asked = 5;
  ends.peers.reads_answered = 200;
  ends.there.adapter.attributes.max_qp_rd_atom = 7;
  const auto link = ends.connect().value();
  CHECK(behind(link).attributes.max_rd_atomic == 7);
  CHECK(behind(link).attributes.max_dest_rd_atomic == 3);
}

TEST_CASE("FC-14 FC-40 timers go to the adapter as codes of the durations asked for") {
  both ends;
  ends.mine.ack_timeout = 1s;
  ends.mine.retries = 200;
  ends.mine.receiver_not_ready_delay = 0ns;
  ends.mine.receiver_not_ready_retries = 3;
  const auto link = ends.connect().value();
  CHECK(behind(link).attributes.timeout == 18);
  CHECK(behind(link).attributes.retry_cnt == 7);
  CHECK(behind(link).attributes.min_rnr_timer == 1);
  CHECK(behind(link).attributes.rnr_retry == 3);
}

TEST_CASE("the ends count packets from where the other says, and know each other's number") {
  host one;
  host other;
  one.up();
  other.up();
  auto first = one.make().value();
  auto second = other.make().value();
  const auto from_first = first.describe().value();
  const auto from_second = second.describe().value();
  const auto here = std::move(first).connect(from_second).value();
  const auto there = std::move(second).connect(from_first).value();
  CHECK(behind(here).attributes.rq_psn == behind(there).attributes.sq_psn);
  CHECK(behind(there).attributes.rq_psn == behind(here).attributes.sq_psn);
  CHECK(behind(here).attributes.dest_qp_num == there.native_handle()->qp_num);
  CHECK(behind(there).attributes.dest_qp_num == here.native_handle()->qp_num);
  CHECK(behind(here).qp_base.state == IBV_QPS_RTS);
}

TEST_CASE("FC-31 Ethernet is addressed by GID") {
  both ends;
  ends.there.adapter.ports[0].gids = {fabricated::roce_v2("::ffff:192.0.2.9")};
  const auto link = ends.connect().value();
  const ibv_ah_attr& to = behind(link).attributes.ah_attr;
  CHECK(to.is_global == 1);
  CHECK(to.grh.sgid_index == 3);
  CHECK(to.grh.dgid.raw[15] == 9);
  CHECK(to.grh.hop_limit > 1);
  CHECK(to.port_num == 1);
}

TEST_CASE("FC-31 InfiniBand is addressed by LID within a subnet, by GID beyond it") {
  both ends;
  ends.here.adapter.ports[0] = infiniband_port(17, "fe80::1");
  SECTION("one subnet") {
    ends.there.adapter.ports[0] = infiniband_port(42, "fe80::2");
    const auto link = ends.connect().value();
    CHECK(behind(link).attributes.ah_attr.is_global == 0);
    CHECK(behind(link).attributes.ah_attr.dlid == 42);
  }
  SECTION("another subnet") {
    ends.there.adapter.ports[0] = infiniband_port(42, "fe80:0:0:1::2");
    const auto link = ends.connect().value();
    CHECK(behind(link).attributes.ah_attr.is_global == 1);
    CHECK(behind(link).attributes.ah_attr.dlid == 42);
  }
  SECTION("a port that wants a GRH") {
    ends.here.adapter.ports[0].attributes.flags = IBV_QPF_GRH_REQUIRED;
    ends.there.adapter.ports[0] = infiniband_port(42, "fe80::2");
    CHECK(behind(ends.connect().value()).attributes.ah_attr.is_global == 1);
  }
  SECTION("a peer without a LID") {
    ends.there.adapter.ports[0] = infiniband_port(0, "fe80::2");
    const auto refused = ends.connect();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == vb::errc::mismatch);
    CHECK(mentions(refused.error(), "LID"));
  }
  SECTION("a peer on Ethernet") {
    const auto refused = ends.connect();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == vb::errc::mismatch);
    CHECK(mentions(refused.error(), "link layer"));
  }
}

TEST_CASE("FC-32 an index that was asked for is used, or refused where it holds nothing") {
  both ends;
  SECTION("used") {
    ends.mine.gid_index = 1;
    ends.peers.gid_index = 1;
    CHECK(behind(ends.connect().value()).attributes.ah_attr.grh.sgid_index == 1);
  }
  SECTION("refused") {
    ends.peers.gid_index = 4;
    const auto refused = ends.connect();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == vb::errc::no_usable_gid);
    CHECK(mentions(refused.error(), "gid_index 4"));
    CHECK(mentions(refused.error(), "which has 4 places"));
  }
}

TEST_CASE("FC-32 ends without a GID in common say what each has, and make no transition") {
  both ends;
  ends.here.adapter.ports[0].gids = {fabricated::roce_v2("::ffff:10.0.0.1")};
  ends.there.adapter.ports[0].gids = {fabricated::roce_v2("fd00::7")};
  const auto refused = ends.connect();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::no_usable_gid);
  CHECK(mentions(refused.error(), "10.0.0.1"));
  CHECK(mentions(refused.error(), "fd00::7"));
}

TEST_CASE("FC-32 a port without a GID can not be described") {
  host on;
  on.adapter.ports[0].gids.assign(4, std::nullopt);
  on.up();
  auto made = on.make().value();
  CHECK(made.describe().error() == vb::errc::no_usable_gid);
}

TEST_CASE("FC-29 bytes that are no descriptor give a typed error and no transition") {
  host on;
  on.up();
  auto peer = on.make().value();
  const vb::descriptor_bytes good = peer.describe().value();
  const auto outcome = [&](std::span<const std::byte> bytes) {
    auto made = on.make().value();
    const unsigned before = on.adapter.count(call::modify_qp);
    auto link = std::move(made).connect(bytes);
    CHECK(made.native_handle() == nullptr);  // NOLINT(bugprone-use-after-move)
    REQUIRE_FALSE(link.has_value());
    CHECK(on.adapter.live(kind::queue_pair) == 1);
    // Closing moves it to ERR; nothing else may have.
    CHECK(on.adapter.count(call::modify_qp) <= before + 1);
    return static_cast<vb::errc>(link.error().code().value());
  };
  const auto changed = [&](std::size_t at, unsigned value) {
    vb::descriptor_bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return outcome(bytes);
  };
  for (const std::size_t length : {0U, 1U, 7U, 8U, 32U, 159U}) {
    CHECK(outcome(std::span{good}.first(length)) == vb::errc::wire_length);
  }
  CHECK(changed(2, 0) == vb::errc::wire_magic);
  CHECK(changed(0, 2) == vb::errc::wire_version);
  CHECK(changed(1, 1) == vb::errc::wire_value);
  CHECK(changed(6, 5) == vb::errc::wire_value);         // regions
  CHECK(changed(7, 0) == vb::errc::wire_value);         // FC-33: no MTU
  CHECK(changed(7, 6) == vb::errc::wire_value);         // no MTU there is
  CHECK(changed(8, IBV_QPT_UD) == vb::errc::mismatch);  // transport
  CHECK(changed(9, IBV_LINK_LAYER_INFINIBAND) == vb::errc::mismatch);
  CHECK(changed(16, 1) == vb::errc::wire_value);  // queue pair number above 24 bits
  CHECK(changed(20, 1) == vb::errc::wire_value);  // packet number above 24 bits
  CHECK(changed(28, 1) == vb::errc::wire_value);  // queue key, of RC
  CHECK(changed(12, 4) == vb::errc::wire_value);  // kind of GID
}

TEST_CASE("FC-19 what is described is there and of the endpoint's own domain") {
  host on;
  on.up();
  auto made = on.make().value();
  using shown = vb::buffer<char, vb::grants_of<vb::remote_readable>>;
  const auto other = vb::verbs::protection_domain::create(on.domain->device()).value();
  const auto good = shown::create(*on.domain, 8).value();
  const auto foreign = shown::create(other, 8).value();
  const auto refused = made.describe(good, foreign);
  CHECK(refused.error() == vb::errc::foreign_domain);
  CHECK(mentions(refused.error(), "region 1"));
  auto gone = shown::create(*on.domain, 8).value();
  gone.close().value();
  CHECK(made.describe(gone).error() == vb::errc::moved_from);
}

TEST_CASE("FC-22 an endpoint on what was moved from is refused, or on another device's queue") {
  host on;
  on.up();
  auto shared = queue::open(*on.opened, {64, 1}).value();
  const auto moved = std::move(shared);
  const auto refused = endpoint::open(*on.domain, shared);  // NOLINT(bugprone-use-after-move)
  CHECK(refused.error() == vb::errc::moved_from);
  host elsewhere;
  elsewhere.up();
  CHECK(endpoint::open(*elsewhere.domain, moved).error() == vb::errc::mismatch);
  auto first = vb::verbs::protection_domain::create(on.domain->device()).value();
  const auto second = std::move(first);
  CHECK(endpoint::open(first).error() == vb::errc::moved_from);  // NOLINT(bugprone-use-after-move)
  CHECK(fabricated::scratch::create(first, 8).error() == vb::errc::moved_from);
}

TEST_CASE("FC-22 a moved-from endpoint is inert") {
  host on;
  on.up();
  auto first = on.make().value();
  {
    const auto second = std::move(first);
    CHECK(first.native_handle() == nullptr);  // NOLINT(bugprone-use-after-move)
    CHECK(first.granted().max_send_wr == 0);
    CHECK(first.describe().error() == vb::errc::moved_from);
    CHECK(first.post(vb::receive(fabricated::memory(*on.domain))).error() == vb::errc::broken);
    CHECK(std::move(first).connect({}).error() == vb::errc::moved_from);
    CHECK(second.native_handle() != nullptr);
  }
  CHECK(on.adapter.live(kind::queue_pair) == 0);
}
