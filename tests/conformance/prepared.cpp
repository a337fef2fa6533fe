// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <cstdint>
#include <optional>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"

namespace vb = verbena;

using links::error_of;
using links::no_failure;
using links::soon;

namespace {

using rc = vb::connection<vb::setup::cm>;
using counting = vb::connection<vb::setup::cm, vb::signaling::one_in<8>>;

const auto completes = vb::on([](const vb::failed& f) { no_failure(f); });

}  // namespace

TEMPLATE_TEST_CASE("prepared: a write and the send that tells of it, again and again", "[prepared]",
                   rc, counting) {
  VERBENA_DEVICE_OR_SKIP(device);
  auto counter = device.allocate<std::uint64_t, vb::source>(1);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(1);
  auto in = device.allocate<std::uint64_t, vb::sink>(1);
  auto both = links::connect<TestType>(device, {.send_depth = 16}, shown);
  auto chain = both.here.prepare(vb::write(counter, both.here.template peer<std::uint64_t>()),
                                 vb::send(counter));
  for (std::uint32_t round = 1; round <= 200; ++round) {
    counter.data()[0] = round;
    REQUIRE(both.there.post(vb::receive(in)));
    REQUIRE(both.here.post(chain.token(round).template token<1>(round)));
    both.there.wait(soon, completes);
    CHECK(in.data()[0] == round);
    CHECK(shown.data()[0] == round);
    std::uint32_t tokens = 0;
    both.here.wait(soon, vb::on([&](vb::completed<vb::write> done) { tokens += done.token(); },
                                [&](vb::completed<vb::send> done) { tokens += done.token(); },
                                [](const vb::failed& f) { no_failure(f); }));
    if constexpr (std::is_same_v<TestType, rc>) CHECK(tokens == 2 * round);
  }
  CHECK(error_of([&] { (void)both.there.post(chain); }) == vb::errc::other_connection);
}

TEST_CASE("prepared: reads bring what is there when they are posted", "[prepared]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto shown = device.allocate<std::uint64_t, vb::remote_readable>(600);
  auto in = device.allocate<std::uint64_t, vb::sink>(600);
  auto both = links::connect<rc>(device, {}, shown);
  auto look = both.here.prepare(vb::read(in, both.here.peer<std::uint64_t, vb::remote_readable>()));
  for (std::uint64_t round = 1; round <= 20; ++round) {
    shown.data()[599] = round;
    REQUIRE(both.here.post(look));
    both.here.wait(soon, completes);
    CHECK(in.data()[599] == round);
  }
}

TEST_CASE("prepared: immediates and the numbers of atomics change from post to post",
          "[prepared]") {
  VERBENA_DEVICE_OR_SKIP(device);
  if (device.domain().device().is_iwarp()) {
    auto both = links::connect<rc>(device, {});
    const auto refused = error_of([&] { (void)both.here.prepare(vb::send_with_immediate(1)); });
    CHECK(refused == vb::errc::not_supported);
    VERBENA_SKIP(refused.message());
  }
  auto counters = device.allocate<std::uint64_t, vb::remote_atomic>(2);
  auto old = device.allocate<std::uint64_t, vb::sink>(2);
  auto both = links::connect<rc>(device, {}, counters);
  const auto there = both.here.peer<std::uint64_t, vb::remote_atomic>();
  auto chain = both.here.prepare(vb::fetch_and_add(old.first(1), there, 0),
                                 vb::compare_and_swap(old.last(1), there.subspan(1), 0, 1),
                                 vb::send_with_immediate(0));
  std::uint64_t sum = 0;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    REQUIRE(both.there.post(vb::receive()));
    REQUIRE(both.here.post(
        chain.operand(round).operands<1>(round - 1, round).immediate<2>(0x89AB'0000 + round)));
    std::vector<std::uint64_t> values;
    both.here.wait(
        soon,
        vb::on(
            [&](vb::completed<vb::fetch_and_add> done) { values.push_back(done.old_value()); },
            [&](vb::completed<vb::compare_and_swap> done) { values.push_back(done.old_value()); },
            [](const vb::failed& f) { no_failure(f); }));
    CHECK(values == std::vector<std::uint64_t>{sum, round - 1});
    sum += round;
    std::optional<std::uint32_t> immediate;
    both.there.wait(soon,
                    vb::on([&](vb::completed<vb::receive> done) { immediate = done.immediate(); },
                           [](const vb::failed& f) { no_failure(f); }));
    CHECK(immediate == 0x89AB'0000 + round);
  }
  CHECK(counters.data()[0] == sum);
  CHECK(counters.data()[1] == 20);
}
