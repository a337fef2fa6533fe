// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <string>
#include <vector>

#include <verbena/connection/post_on.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;
using vb::errc;

namespace {

using word = std::uint64_t;
using target = vb::remote_region<word, vb::rights::remote_atomic>;
constexpr target counter{0x7000'1000, 2, vb::rkey{0x77}};

/// Memory for old values.
auto old_values(const vb::verbs::protection_domain& domain, std::size_t count = 4) {
  return vb::buffer<word, vb::grants_of<vb::sink>>::create(domain, count).value();
}

}  // namespace

TEST_CASE("FC-25 an atomic reaches the provider with its operands in their places") {
  workbench<> test;
  const auto old = old_values(test.domain);
  CHECK(test.link.post(
      vb::compare_and_swap(old, counter, 0x0102'0304'0506'0708, 0x1112'1314'1516'1718).token(1),
      vb::fetch_and_add(old.subspan(1), counter.subspan(1), 5)));
  REQUIRE(test.sends().size() == 2);
  const auto& swap = test.sends()[0];
  CHECK(swap.request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP);
  CHECK(swap.request.wr.atomic.compare_add == 0x0102'0304'0506'0708);
  CHECK(swap.request.wr.atomic.swap == 0x1112'1314'1516'1718);
  CHECK(swap.request.wr.atomic.remote_addr == counter.address());
  CHECK(swap.request.wr.atomic.rkey == 0x77);
  REQUIRE(swap.pieces.size() == 1);
  CHECK(swap.pieces[0].addr == reinterpret_cast<std::uintptr_t>(old.data()));
  CHECK(swap.pieces[0].length == 8);
  const auto& add = test.sends()[1];
  CHECK(add.request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
  CHECK(add.request.wr.atomic.compare_add == 5);
  CHECK(add.request.wr.atomic.remote_addr == counter.address() + 8);
  CHECK(add.pieces[0].addr == reinterpret_cast<std::uintptr_t>(old.data() + 1));
  CHECK(add.pieces[0].length == 8);
}

TEST_CASE("FC-25 the old value by value is the one in the buffer, whatever the depth") {
  workbench<> test{{.send_depth = 4, .receive_depth = 2}};
  const auto old = old_values(test.domain);
  std::vector<word> seen;
  for (word round = 0; round < 8; ++round) {
    CHECK(test.link.post(vb::fetch_and_add(old.subspan(round % 4), counter, 1)));
    old.data()[round % 4] = 1000 + round;  // as the adapter does
    test.adapter.complete_sends(test.link.native());
    CHECK(test.link.queue->poll(
        vb::on([&](vb::completed<vb::fetch_and_add> done) { seen.push_back(done.old_value()); },
               [](const vb::failed&) {})));
  }
  CHECK(seen == std::vector<word>{1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007});
}

TEST_CASE("receives and atomics remember their memory apart") {
  workbench<> test{{.send_depth = 2, .receive_depth = 2}};
  const auto old = old_values(test.domain);
  CHECK(test.link.post(vb::receive(test.memory.first(16))));
  CHECK(test.link.post(vb::compare_and_swap(old, counter, 1, 2)));
  old.data()[0] = 99;
  test.adapter.complete_all(test.link.native(), 3);
  word value = 0;
  const void* received = nullptr;
  CHECK(test.link.queue->poll(
      vb::on([&](vb::completed<vb::compare_and_swap> done) { value = done.old_value(); },
             [&](vb::completed<vb::receive> done) { received = done.bytes().data(); },
             [](const vb::failed&) {})));
  CHECK(value == 99);
  CHECK(received == test.memory.data());
}

TEST_CASE("FC-26 an atomic that can not work is refused before the provider is called") {
  workbench<> test;
  const auto old = old_values(test.domain);
  const target unaligned{counter.address() + 4, 1, counter.key()};
  const auto refused = test.link.post(vb::fetch_and_add(old, unaligned, 1));
  CHECK(refused.error() == errc::misaligned);
  CHECK(test.link.post(vb::compare_and_swap(old, counter.first(0), 1, 2)).error() ==
        errc::outside_region);
  CHECK(test.link.post(vb::compare_and_swap(old.first(0), counter, 1, 2)).error() ==
        errc::empty_piece);
  const auto other = vb::verbs::protection_domain::create(test.opened).value();
  const auto foreign = old_values(other);
  CHECK(test.link.post(vb::fetch_and_add(foreign, counter, 1)).error() == errc::foreign_domain);
  CHECK(test.adapter.count(call::post_send) == 0);
  CHECK(test.link.post(vb::fetch_and_add(old, counter, 1)));
}

TEST_CASE("FC-41 a device without atomics refuses them before the provider is called") {
  workbench<> test{{.lacking = vb::feature::atomics}};
  const auto old = old_values(test.domain);
  const auto refused = test.link.post(vb::fetch_and_add(old, counter, 1));
  CHECK(refused.error() == errc::not_supported);
  CHECK(test.link.post(vb::compare_and_swap(old, counter, 1, 2)).error() == errc::not_supported);
  CHECK(test.adapter.count(call::post_send) == 0);
  CHECK(mentions(vb::post_error(*test.link.state, refused).message(),
                 std::string{test.adapter.native.name} + " has no atomics"));
}
