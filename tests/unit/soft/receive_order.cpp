// SPDX-License-Identifier: BSL-1.0
#include <future>

#include "side.hpp"
#include "taker.hpp"
#include "taking.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

// Receives of one queue complete in the order of posting: who counts them retires all before one.

namespace {

/// A queue pair for datagrams with two receives, and two devices that send to it.
struct mailbox {
  explicit mailbox(const std::string& fabric) : on{fabric}, first{fabric}, second{fabric} {
    one.connect(0);
    other.connect(0);
    for (std::uint64_t id = 1; id <= 2; ++id)
      REQUIRE(one.receive(id, {on.piece(256 * id, 128)}) == 0);
    ibv_ah_attr to = other.address();
    handle = second.calls.create_ah(second.domain, &to);
    REQUIRE(handle != nullptr);
  }
  ~mailbox() { second.calls.destroy_ah(handle); }
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  int send(std::uint64_t id) {
    return other.send_to(id, handle, one.pair->qp_num, {second.piece(0, 8)});
  }

  static end_options datagrams() {
    end_options with;
    with.type = IBV_QPT_UD;
    return with;
  }
  side on;
  side first;
  side second;
  end one{on, datagrams()};
  end other{second, datagrams()};
  ibv_ah* handle = nullptr;
};

}  // namespace

TEST_CASE("soft: receives are flushed after the one that a peer is filling", "[soft]") {
  linked both;
  const std::uint32_t number = both.other.pair->qp_num;
  for (std::uint64_t id = 1; id <= 3; ++id) REQUIRE(both.other.receive(id, {}) == 0);
  soft::taken_receive taken;
  REQUIRE(take(both.here, number, taken) == soft::taking::got);
  REQUIRE(both.other.modify(IBV_QPS_ERR, 0) == 0);
  CHECK(stays_empty(both.other.receives));
  tell(both.here, number, taken);
  CHECK(status_of(both.other.receives, 1) == IBV_WC_SUCCESS);
  CHECK(status_of(both.other.receives, 2) == IBV_WC_WR_FLUSH_ERR);
  CHECK(status_of(both.other.receives, 3) == IBV_WC_WR_FLUSH_ERR);
  taken.finish();  // too late to matter
  CHECK(stays_empty(both.other.receives));
}

TEST_CASE("soft: a receive that a dead peer had taken is flushed in its turn", "[soft]") {
  const std::string fabric = fabric_name();
  taker dying{fabric};
  side on{fabric};
  end one{on};
  one.connect(one.pair->qp_num);
  for (std::uint64_t id = 1; id <= 3; ++id) REQUIRE(one.receive(id, {}) == 0);
  dying.take_and_die(one.pair->qp_num);
  REQUIRE(one.modify(IBV_QPS_ERR, 0) == 0);
  for (std::uint64_t id = 1; id <= 3; ++id)
    CHECK(status_of(one.receives, id) == IBV_WC_WR_FLUSH_ERR);
  CHECK(stays_empty(one.receives));
}

TEST_CASE("soft: a datagram does not overtake another", "[soft]") {
  mailbox to{fabric_name()};
  const std::uint32_t number = to.one.pair->qp_num;
  soft::taken_receive taken;
  REQUIRE(take(to.first, number, taken) == soft::taking::got);
  SECTION("that comes") {
    auto sending = std::async(std::launch::async, [&] { return to.send(1); });
    std::this_thread::sleep_for(20ms);
    tell(to.first, number, taken);
    CHECK(sending.get() == 0);
    taken.finish();
    CHECK(status_of(to.one.receives, 1) == IBV_WC_SUCCESS);
    CHECK(status_of(to.one.receives, 2) == IBV_WC_SUCCESS);
  }
  SECTION("that does not end") {
    const auto begun = clock::now();
    CHECK(to.send(1) == 0);
    CHECK(clock::now() - begun < 10s);
    CHECK(status_of(to.other.sends, 1) == IBV_WC_SUCCESS);
    CHECK(stays_empty(to.one.receives));
    tell(to.first, number, taken);
    taken.finish();
    CHECK(status_of(to.one.receives, 1) == IBV_WC_SUCCESS);
  }
  CHECK(stays_empty(to.one.receives));
}

TEST_CASE("soft: a datagram does not overtake one whose sender dies as it tells of it", "[soft]") {
  const std::string fabric = fabric_name();
  taker dying{fabric, begin_to_tell};
  mailbox to{fabric};
  dying.take_and_die(to.one.pair->qp_num);
  std::vector<std::uint64_t> got;
  for (std::uint64_t id = 1; got.size() < 2 && id < 1000; ++id) {  // datagrams are lost at first
    REQUIRE(to.send(id) == 0);
    CHECK(status_of(to.other.sends, id) == IBV_WC_SUCCESS);
    if (const auto found = next(to.one.receives, 5ms)) got.push_back(found->wr_id);
  }
  CHECK(got == std::vector<std::uint64_t>{1, 2});
  CHECK(stays_empty(to.one.receives));
}

TEST_CASE("soft: a datagram after one whose sender has died takes its receive at once", "[soft]") {
  const std::string fabric = fabric_name();
  taker dying{fabric};
  mailbox to{fabric};
  dying.take_and_die(to.one.pair->qp_num);
  REQUIRE(to.send(1) == 0);
  CHECK(status_of(to.one.receives, 1) == IBV_WC_SUCCESS);
  REQUIRE(to.send(2) == 0);
  CHECK(status_of(to.one.receives, 2) == IBV_WC_SUCCESS);
  CHECK(stays_empty(to.one.receives));
}
