// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"
#include "fixture/words.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using links::error_of;
using links::fill;
using links::no_failure;
using links::same;
using links::soon;

namespace {

/// RC as it can be connected on every device, and UC.
using rc = vb::connection<vb::transport::rc, vb::setup::cm>;
using uc = vb::connection<vb::transport::uc>;

/// Leaves where the device does not have the connection's transport, with its reason.
#define VERBENA_TRANSPORT_OR_SKIP(device, Link)                                          \
  if (vb::policies<vb::transport::uc>::transport::queue_pair_type ==                     \
          Link::policies::transport::queue_pair_type &&                                  \
      (device).domain().device().is_iwarp()) {                                           \
    const auto refused =                                                                 \
        vb::endpoint<vb::transport::uc, vb::errors::returning>::open((device).domain()); \
    REQUIRE_FALSE(refused.has_value());                                                  \
    REQUIRE(refused.error() == vb::errc::not_supported);                                 \
    REQUIRE(mentions(refused.error(), (device).name()));                                 \
    VERBENA_SKIP(refused.error().message());                                             \
  }

}  // namespace

TEMPLATE_TEST_CASE("operations: a write and the send after it", "[operations]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_TRANSPORT_OR_SKIP(device, TestType);
  auto out = device.allocate<std::uint64_t, vb::source>(600);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(600);
  auto in = device.allocate<std::uint64_t, vb::sink>(4);
  fill(out.elements(), 1);
  auto both = links::connect<TestType>(device, {}, shown);
  REQUIRE(both.there.post(vb::receive(in).token(5)));
  const auto to = both.here.template peer<std::uint64_t>();
  REQUIRE(both.here.post(vb::write(out, to).token(1), vb::send(out.first(3)).token(2)));
  std::uint32_t writes = 0;
  std::uint32_t sends = 0;
  both.here.wait(soon, vb::on([&](vb::completed<vb::write> done) { writes += done.token(); },
                              [&](vb::completed<vb::send> done) { sends += done.token(); },
                              [](const vb::failed& f) { no_failure(f); }));
  CHECK(writes == 1);
  CHECK(sends == 2);
  std::uint32_t received = 0;
  both.there.wait(soon, vb::on(
                            [&](vb::completed<vb::receive> done) {
                              received = done.size();
                              CHECK(done.token() == 5);
                              CHECK(done.bytes().data() == reinterpret_cast<std::byte*>(in.data()));
                            },
                            [](const vb::failed& f) { no_failure(f); }));
  CHECK(received == 24);
  CHECK(same(in.elements().first(3), out.elements().first(3)));
  CHECK(same(shown.elements(), out.elements()));
}

namespace {

/// What receives bring: lengths, and immediates where there were any.
struct inbox {
  std::vector<std::uint32_t> sizes;
  std::vector<std::optional<std::uint32_t>> immediates;
  unsigned writes = 0;

  auto handlers() {
    return vb::on(
        [this](vb::completed<vb::receive> done) {
          sizes.push_back(done.size());
          immediates.push_back(done.immediate());
          if (done.is_write()) {
            ++writes;
            CHECK(done.bytes().empty());
          }
        },
        [](const vb::failed& f) { no_failure(f); });
  }
};

using immediates = std::vector<std::optional<std::uint32_t>>;

/// Leaves where the device has no such operation, once a post of one has said so.
#define VERBENA_OPERATION_OR_SKIP(device, posted)         \
  if ((device).domain().device().is_iwarp()) {            \
    const auto refused = error_of([&] { (void)posted; }); \
    REQUIRE(refused == vb::errc::not_supported);          \
    REQUIRE(mentions(refused, (device).name()));          \
    VERBENA_SKIP(refused.message());                      \
  }

}  // namespace

TEMPLATE_TEST_CASE("operations: FC-30 immediates with data, without, and none", "[operations]", rc,
                   uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_TRANSPORT_OR_SKIP(device, TestType);
  auto out = device.allocate<std::uint64_t, vb::source>(600);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(600);
  auto in = device.allocate<std::uint64_t, vb::sink>(600);
  fill(out.elements(), 1);
  auto both = links::connect<TestType>(device, {}, shown);
  VERBENA_OPERATION_OR_SKIP(device, both.here.post(vb::send_with_immediate(out, 1)));
  const auto to = both.here.template peer<std::uint64_t>();
  REQUIRE(both.there.post(vb::receive(in), vb::receive(), vb::receive(in.first(2)), vb::receive(),
                          vb::receive(in.last(1))));
  REQUIRE(both.here.post(vb::send_with_immediate(out, 0x89AB'CDEF), vb::send_with_immediate(0),
                         vb::write_with_immediate(out, to, 0xFFFF'FFFF),
                         vb::write_with_immediate(to, 7), vb::send(out.first(1))));
  both.here.wait(soon, vb::on([](const vb::failed& f) { no_failure(f); }));
  inbox got;
  both.there.wait(soon, got.handlers());
  CHECK(got.immediates == immediates{0x89AB'CDEF, 0U, 0xFFFF'FFFF, 7U, std::nullopt});
  CHECK(got.sizes == std::vector<std::uint32_t>{4800, 0, 4800, 0, 8});
  CHECK(got.writes == 2);
  CHECK(same(in.elements().first(599), out.elements().first(599)));
  CHECK(in.elements()[599] == 1);
  CHECK(same(shown.elements(), out.elements()));
}

TEST_CASE("operations: FC-25 atomics change the peer's object and give the old one",
          "[operations]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto old = device.allocate<std::uint64_t, vb::sink>(4);
  if (device.domain().device().is_iwarp()) {
    auto both = links::connect<rc>(device, {});
    const vb::remote_region<std::uint64_t, vb::rights::remote_atomic> nowhere{8, 1, vb::rkey{1}};
    VERBENA_OPERATION_OR_SKIP(device, both.here.post(vb::fetch_and_add(old, nowhere, 1)));
  }
  auto counters = device.allocate<std::uint64_t, vb::remote_atomic>(2);
  counters.data()[0] = 0x0102'0304'0506'0708;
  counters.data()[1] = ~std::uint64_t{0};
  auto both = links::connect<rc>(device, {}, counters);
  const auto all = both.here.peer<std::uint64_t, vb::remote_atomic>();
  REQUIRE(both.here.post(
      vb::compare_and_swap(old.subspan(0), all, 0x0102'0304'0506'0708, 0x1112'1314'1516'1718),
      vb::compare_and_swap(old.subspan(1), all, 0x0102'0304'0506'0708, 1),
      vb::fetch_and_add(old.subspan(2), all, 0x10),
      vb::fetch_and_add(old.subspan(3), all.subspan(1), 3)));
  std::vector<std::uint64_t> values;
  both.here.wait(
      soon,
      vb::on([&](vb::completed<vb::compare_and_swap> done) { values.push_back(done.old_value()); },
             [&](vb::completed<vb::fetch_and_add> done) { values.push_back(done.old_value()); },
             [](const vb::failed& f) { no_failure(f); }));
  const std::vector<std::uint64_t> expected{0x0102'0304'0506'0708, 0x1112'1314'1516'1718,
                                            0x1112'1314'1516'1718, ~std::uint64_t{0}};
  CHECK(values == expected);
  CHECK(same(old.elements(), expected));
  CHECK(counters.data()[0] == 0x1112'1314'1516'1728);
  CHECK(counters.data()[1] == 2);
}

TEMPLATE_TEST_CASE("operations: FC-06 unregistered memory travels inline", "[operations]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_TRANSPORT_OR_SKIP(device, TestType);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(4);
  auto in = device.allocate<std::uint64_t, vb::sink>(4);
  auto both = links::connect<TestType>(device, {.inline_bytes = 32}, shown);
  REQUIRE(both.here.granted().max_inline_data >= 32);
  const auto to = both.here.template peer<std::uint64_t>();
  REQUIRE(both.there.post(vb::receive(in)));
  std::uint64_t number = 0x0102'0304'0506'0708;
  std::array<std::uint64_t, 4> numbers{1, 2, 3, 4};
  REQUIRE(both.here.post(vb::write(vb::unregistered{number}, to.subspan(3)),
                         vb::send(vb::unregistered{numbers}).solicited()));
  number = 0;
  numbers = {};
  both.here.wait(soon, vb::on([](const vb::failed& f) { no_failure(f); }));
  both.there.wait(soon, vb::on([](const vb::failed& f) { no_failure(f); }));
  CHECK(same(in.elements(), std::array<std::uint64_t, 4>{1, 2, 3, 4}));
  CHECK(shown.data()[3] == 0x0102'0304'0506'0708);

  const std::vector<char> longer(both.here.granted().max_inline_data + 1);
  const vb::error refused =
      error_of([&] { (void)both.here.post(vb::send(vb::unregistered{longer})); });
  CHECK(refused == vb::errc::inline_too_long);
}

TEST_CASE("operations: FC-27 a fenced write does not overtake the read before it", "[operations]") {
  VERBENA_DEVICE_OR_SKIP(device);
  constexpr std::size_t words = 64 * 1024;
  auto shown = device.allocate<std::uint64_t, vb::remote_readable, vb::remote_writable>(words);
  auto old = device.allocate<std::uint64_t, vb::sink>(words);
  auto fresh = device.allocate<std::uint64_t, vb::source>(words);
  fill(shown.elements(), 1);
  fill(fresh.elements(), 1'000'000);
  const std::vector<std::uint64_t> before(shown.elements().begin(), shown.elements().end());
  auto both = links::connect<rc>(device, {}, shown);
  const auto readable = both.here.peer<std::uint64_t, vb::remote_readable>();
  REQUIRE(both.here.post(
      vb::read(old, readable),
      vb::write(fresh, both.here.peer<std::uint64_t, vb::remote_writable>()).fenced()));
  both.here.wait(soon, vb::on([](const vb::failed& f) { no_failure(f); }));
  CHECK(same(old.elements(), before));
  // Reading it back shows that the write has arrived.
  REQUIRE(both.here.post(vb::read(old, readable)));
  both.here.wait(soon, vb::on([](const vb::failed& f) { no_failure(f); }));
  CHECK(same(old.elements(), fresh.elements()));
}

TEMPLATE_TEST_CASE("operations: capabilities are what a post is measured by", "[operations]", rc,
                   uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_TRANSPORT_OR_SKIP(device, TestType);
  const auto both = links::connect<TestType>(device, {.send_depth = 64, .reads_asked = 3});
  const vb::capabilities can = both.here.capabilities();
  const bool iwarp = device.domain().device().is_iwarp();
  const bool reads = TestType::policies::transport::carries(vb::operation::read);
  CHECK(can.device == device.name());
  CHECK(can.transport == (reads ? "rc" : "uc"));
  CHECK(can.immediates == !iwarp);
  CHECK(can.atomics == (reads && !iwarp));
  CHECK(can.fenced_reads == (reads && !iwarp));
  CHECK(can.empty_receives == !iwarp);
  CHECK(can.reads == (reads ? 3 : 0));
  CHECK(can.send_depth >= 64);
  CHECK(can.send_pieces >= 2);
  CHECK(can.receive_pieces >= 2);
  CHECK((can.read_pieces != 0) == reads);
  CHECK(can.inline_bytes == both.here.granted().max_inline_data);
  CHECK(can.max_message >= 1U << 20U);
  const std::string shown = to_string(can);
  CHECK(shown.starts_with("transport::" + can.transport + " on " + device.name() + "\n"));
  CHECK(shown.find(std::string{"atomics: "} + (can.atomics ? "yes" : "no")) != std::string::npos);
  auto moved = vb::endpoint<>{device};
  CHECK(moved.capabilities().reads == 0);
  const vb::endpoint<> other = std::move(moved);
  // NOLINTNEXTLINE(bugprone-use-after-move)
  CHECK(moved.capabilities().device.empty());
}
