// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using links::error_of;
using links::no_failure;
using links::soon;

namespace {

using endpoint = vb::endpoint<vb::transport::ud>;
using connection = vb::connection<vb::transport::ud>;

/// Leaves where the device has no datagrams, with its reason.
#define VERBENA_DATAGRAMS_OR_SKIP(device)                                                \
  if ((device).domain().device().is_iwarp()) {                                           \
    const auto refused =                                                                 \
        vb::endpoint<vb::transport::ud, vb::errors::returning>::open((device).domain()); \
    REQUIRE_FALSE(refused.has_value());                                                  \
    REQUIRE(refused.error() == vb::errc::not_supported);                                 \
    REQUIRE(mentions(refused.error(), "transport::ud on " + (device).name()));           \
    VERBENA_SKIP(refused.error().message());                                             \
  }

constexpr std::size_t prefix = 40;
constexpr std::chrono::milliseconds a_while{200};  // in which nothing shall come

/// An end whose receives are there before anybody can send to it.
struct end {
  explicit end(const vb::device& on, const vb::options& chosen = {})
      : inbox{on.allocate<vb::sink>(receives * place)}, out{on.allocate<vb::source>(8192)} {
    endpoint made{on, chosen};
    described = made.describe();
    for (std::uint32_t i = 0; i < receives; ++i) {
      REQUIRE(made.post(vb::receive(inbox.subspan(i * place, place)).token(i)));
    }
    link.emplace(std::move(made).connect());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
  }

  bool sent(std::span<const std::byte> bytes) const {
    return std::ranges::equal(bytes, out.elements().first(bytes.size()));
  }

  /// The next datagrams.
  template <class Function>
  void take(std::uint32_t count, Function&& function) {
    std::uint32_t taken = 0;
    while (taken < count) {
      const auto found =
          link->completions().wait(soon, vb::on(
                                             [&](vb::datagram each) {
                                               ++taken;
                                               function(each);
                                             },
                                             [](const vb::failed& f) { no_failure(f); }));
      REQUIRE(found);
    }
  }

  bool nothing_comes() {
    bool came = false;
    try {
      link->completions().wait(a_while, vb::on([&](vb::datagram) { came = true; },
                                               [](const vb::failed& f) { no_failure(f); }));
    } catch (const vb::failure& thrown) {
      CHECK(thrown.reason() == vb::errc::timed_out);
    }
    return !came;
  }

  /// Until all sends have left.
  void flush() {
    std::uint32_t left = 0;
    while (left == 0) {
      link->completions().wait(soon, vb::on([&](vb::completed<vb::send>) { ++left; },
                                            [](const vb::failed& f) { no_failure(f); }));
    }
  }

  static constexpr std::uint32_t receives = 4;
  static constexpr std::size_t place = 4096 + prefix;
  vb::buffer<std::byte, vb::grants_of<vb::sink>> inbox;
  vb::buffer<std::byte, vb::grants_of<vb::source>> out;
  vb::descriptor_bytes described{};
  std::optional<connection> link;
};

}  // namespace

TEST_CASE("datagrams: to a described peer, and back to the sender", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end here{device};
  end there{device};
  const vb::peer to = here.link->peer(there.described);
  CHECK(to.number() == there.link->native_handle()->qp_num);
  CHECK(to.queue_key() == vb::options{}.queue_key);
  REQUIRE(here.link->post(vb::send(here.out.first(100)).to(to),
                          vb::send_with_immediate(here.out.first(33), 0x89ab'cdef).to(to)));
  std::optional<vb::peer> back;
  there.take(2, [&](vb::datagram got) {
    CHECK(got.connection() == there.link->id());
    CHECK(got.retired() == 1);
    CHECK(got.sender() == here.link->native_handle()->qp_num);
    CHECK(here.sent(got.bytes()));
    if (got.token() == 0) {
      CHECK(got.size() == 100);
      CHECK_FALSE(got.immediate().has_value());
      CHECK(got.bytes().data() == there.inbox.data() + prefix);
      back.emplace(there.link->peer(got));
    } else {
      CHECK(got.token() == 1);
      CHECK(got.size() == 33);
      CHECK(got.immediate() == 0x89ab'cdef);
    }
  });
  REQUIRE(back.has_value());
  CHECK(back->number() == here.link->native_handle()->qp_num);
  REQUIRE(there.link->post(vb::send_with_immediate(5).to(*back)));  // which is a message too
  here.take(1, [&](vb::datagram got) {
    CHECK(got.size() == 0);
    CHECK(got.bytes().empty());
    CHECK(got.immediate_or(0) == 5);
    CHECK(got.sender() == there.link->native_handle()->qp_num);
  });
}

TEST_CASE("datagrams: one connection sends to many peers, and each tells whose it is",
          "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end hub{device};
  std::vector<end> others;
  std::vector<vb::peer> peers;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back(device);
    peers.push_back(hub.link->peer(others.back().described));
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    REQUIRE(hub.link->post(vb::send(hub.out.first(10 * (i + 1))).to(peers[i])));
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    others[i].take(1, [&](vb::datagram got) { CHECK(got.size() == 10 * (i + 1)); });
    CHECK(others[i].nothing_comes());
  }
}

TEST_CASE("datagrams: as long as the MTU, not longer", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end here{device};
  end there{device};
  const vb::peer to = here.link->peer(there.described);
  const std::size_t most = to.max_message();
  CHECK(most >= 256);
  CHECK(most <= 4096);
  REQUIRE(here.link->post(vb::send(here.out.first(most)).to(to)));
  there.take(1, [&](vb::datagram got) {
    CHECK(got.size() == most);
    CHECK(here.sent(got.bytes()));
  });
  const auto too_long =
      error_of([&] { (void)here.link->post(vb::send(here.out.first(most + 1)).to(to)); });
  CHECK(too_long == vb::errc::message_too_long);
  CHECK(mentions(too_long, std::to_string(most)));
  REQUIRE(
      here.link->post(vb::send(vb::pieces{here.out.first(most - 1), here.out.first(1)}).to(to)));
  there.take(1, [&](vb::datagram got) { CHECK(got.size() == most); });
  CHECK(error_of([&] {
          (void)here.link->post(
              vb::send(vb::pieces{here.out.first(most), here.out.first(1)}).to(to));
        }) == vb::errc::message_too_long);
}

TEST_CASE("datagrams: a receive holds what stands in front of a message", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  endpoint there{device};
  const auto described = there.describe();
  auto in = device.allocate<vb::sink>(4096);
  const auto refused = error_of([&] { (void)there.post(vb::receive(in.first(prefix - 1))); });
  CHECK(refused == vb::errc::short_receive);
  CHECK(mentions(refused, "40 bytes"));
  REQUIRE(there.post(vb::receive(in.first(prefix)).token(1)));
  // In pieces it is for the program to tell them apart.
  REQUIRE(
      there.post(vb::receive(vb::pieces{in.subspan(100, prefix), in.subspan(200, 8)}).token(2)));
  connection link = std::move(there).connect();
  end here{device};
  const vb::peer to = here.link->peer(described);
  REQUIRE(here.link->post(vb::send_with_immediate(1).to(to), vb::send(here.out.first(8)).to(to)));
  std::uint32_t taken = 0;
  while (taken < 2) {
    link.completions().wait(
        soon, vb::on(
                  [&](vb::datagram got) {
                    ++taken;
                    CHECK(got.bytes().empty());
                    CHECK(got.size() == (got.token() == 1 ? 0 : 8));
                    if (got.token() != 2) return;
                    CHECK(error_of([&] { (void)link.peer(got); }) == vb::errc::no_usable_gid);
                  },
                  [](const vb::failed& f) { no_failure(f); }));
  }
  CHECK(here.sent(in.elements().subspan(200, 8)));
}

TEST_CASE("datagrams: what finds no receive, or comes with another key, is lost", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end here{device};
  end there{device, {.queue_key = 0x1234}};
  const vb::peer to = here.link->peer(there.described);
  CHECK(to.queue_key() == 0x1234);
  REQUIRE(here.link->post(vb::send(here.out.first(9)).to(to)));
  // What comes back is for this end's key, which the sender does not have.
  there.take(1, [&](vb::datagram got) {
    const vb::peer back = there.link->peer(got);
    CHECK(back.queue_key() == 0x1234);
    REQUIRE(there.link->post(vb::send(there.out.first(9)).to(back)));
  });
  there.flush();
  CHECK(here.nothing_comes());
  for (std::uint32_t i = 0; i < end::receives + 2; ++i) {
    REQUIRE(here.link->post(vb::send(here.out.first(9)).to(to)));
  }
  there.take(end::receives - 1, [](vb::datagram got) { CHECK(got.size() == 9); });
  CHECK(there.nothing_comes());
}

TEST_CASE("datagrams: a peer may go once its sends are posted", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end here{device};
  end there{device};
  std::optional<vb::peer> to{here.link->peer(there.described)};
  REQUIRE(here.link->post(vb::send(here.out.first(50)).to(*to)));
  to.reset();
  there.take(1, [&](vb::datagram got) { CHECK(got.size() == 50); });
  here.flush();

  vb::peer moved = here.link->peer(there.described);
  const vb::peer target = std::move(moved);
  CHECK(error_of([&] {
          // NOLINTNEXTLINE(bugprone-use-after-move)
          (void)here.link->post(vb::send(here.out.first(50)).to(moved));
        }) == vb::errc::foreign_domain);
  REQUIRE(here.link->post(vb::send(here.out.first(51)).to(target)));
  there.take(1, [&](vb::datagram got) { CHECK(got.size() == 51); });
}

TEST_CASE("datagrams: peers of other domains, and descriptors of other transports, are refused",
          "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end here{device};
  vb::device again = vb::open_device(device.name());
  end there{again};
  const vb::peer foreign = there.link->peer(here.described);
  CHECK(error_of([&] { (void)here.link->post(vb::send(here.out.first(1)).to(foreign)); }) ==
        vb::errc::foreign_domain);
  const auto connected = vb::endpoint<>{device}.describe();
  CHECK(error_of([&] { (void)here.link->peer(connected); }) == vb::errc::mismatch);
  CHECK(error_of([&] { (void)vb::endpoint<>{device}.connect(here.described); }) ==
        vb::errc::mismatch);
  vb::descriptor_bytes cut = here.described;
  CHECK(error_of([&] { (void)here.link->peer(std::span{cut}.first(100)); }) ==
        vb::errc::wire_length);
}

TEST_CASE("datagrams: beside a connection on one completion queue", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  auto in = device.allocate<vb::sink>(4096);
  auto out = device.allocate<vb::source>(512);
  vb::completion_queue<> both{device, {.entries = 1024, .connections = 2}};
  // A place in the queue is used again and again: its generations come round.
  for (int round = 0; round < 18; ++round) {
    vb::endpoint<> reliable{device, both};
    vb::endpoint<vb::transport::ud> datagrams{device, both};
    vb::endpoint<> reliable_peer{device};
    vb::endpoint<vb::transport::ud> datagram_peer{device};
    const auto at = datagrams.describe();
    REQUIRE(reliable.post(vb::receive(in.first(100)).token(1)));
    REQUIRE(datagrams.post(vb::receive(in.subspan(100, 100)).token(2)));
    REQUIRE(datagrams.post(vb::receive(in.subspan(200, 100)).token(3)));
    const auto one = reliable.describe();
    const auto other = reliable_peer.describe();
    vb::connection<> stream = std::move(reliable).connect(other);
    vb::connection<> stream_peer = std::move(reliable_peer).connect(one);
    connection packets = std::move(datagrams).connect();
    connection packets_peer = std::move(datagram_peer).connect();
    const vb::peer to = packets_peer.peer(at);
    REQUIRE(stream_peer.post(vb::send(out.first(60))));
    REQUIRE(packets_peer.post(vb::send(out.first(50)).to(to)));
    std::uint32_t messages = 0;
    std::uint32_t datagrams_seen = 0;
    std::uint32_t flushed = 0;
    const auto see = vb::on(
        [&](vb::completed<vb::receive> got) {
          ++messages;
          CHECK(got.connection() == stream.id());
          CHECK(got.token() == 1);
          CHECK(got.bytes().size() == 60);
        },
        [&](vb::datagram got) {
          ++datagrams_seen;
          CHECK(got.connection() == packets.id());
          CHECK(got.token() == 2);
          CHECK(got.bytes().size() == 50);
        },
        [&](vb::failed f) {
          ++flushed;
          CHECK(f.connection() == packets.id());
          CHECK(f.what() == vb::operation::receive);
          CHECK(f.token() == 3);
        });
    while (messages + datagrams_seen < 2) REQUIRE(both.wait(soon, see));
    CHECK(flushed == 0);
    packets_peer.wait(soon);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    REQUIRE(device.domain().device().table().modify_qp(packets.native_handle(), &attributes,
                                                       IBV_QP_STATE) == 0);
    while (flushed == 0) REQUIRE(both.wait(soon, see));
    CHECK(messages == 1);
    CHECK(datagrams_seen == 1);
  }
}

TEST_CASE("datagrams: by posting::builder", "[datagrams]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_DATAGRAMS_OR_SKIP(device);
  end there{device};
  vb::connection<vb::transport::ud, vb::posting::builder> here =
      vb::endpoint<vb::transport::ud, vb::posting::builder>{device}.connect();
  const vb::peer to = here.peer(there.described);
  REQUIRE(here.post(vb::send(there.out.first(100)).to(to),
                    vb::send_with_immediate(there.out.first(33), 0x89ab'cdef).to(to),
                    vb::send_with_immediate(7).to(to)));
  there.take(3, [&](vb::datagram got) {
    const std::array<std::uint32_t, 3> sizes{100, 33, 0};
    const std::array<std::uint32_t, 3> immediates{0, 0x89ab'cdef, 7};
    CHECK(got.size() == sizes.at(got.token()));
    CHECK(got.immediate_or(0) == immediates.at(got.token()));
    CHECK(there.sent(got.bytes()));
    CHECK(got.sender() == here.native_handle()->qp_num);
  });
  here.wait(soon);
}
