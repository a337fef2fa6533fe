// SPDX-License-Identifier: BSL-1.0
#include "side.hpp"
#include "sleeper.hpp"

using namespace soft_test;

// A message that is posted before its receive waits at the sender; the receiver alone brings it.

namespace {

/// Two ends of one device, the first of which has sent to the second.
struct sent {
  explicit sent(const end_options& with = {}) : on{fabric_name()}, one{on, with}, other{on, with} {
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    on.word(0) = 42;
    REQUIRE(one.send(1, {on.piece(0, 8)}) == 0);
  }
  side on;
  end one;
  end other;
};

}  // namespace

TEST_CASE("soft: a receiver that polls gets what was sent before its receive", "[soft]") {
  sent both;
  std::this_thread::sleep_for(1ms);
  REQUIRE(both.other.receive(2, {both.on.piece(64, 8)}) == 0);
  CHECK(status_of(both.other.receives, 2) == IBV_WC_SUCCESS);
  CHECK(both.on.word(64) == 42);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
}

TEST_CASE("soft: a receiver that sleeps gets what was sent before its receive", "[soft]") {
  side on{fabric_name()};
  const sleeper asleep{on};
  end one{on};
  end_options with;
  with.channel = asleep.channel;
  end other{on, with};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  REQUIRE(one.send(1, {on.piece(0, 8)}) == 0);
  // Before its timer of 10 us is over, so that this does not bring it yet.
  REQUIRE(other.receive(2, {on.piece(64, 8)}) == 0);
  const auto got = asleep.next(other.receives);
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 2);
}

TEST_CASE("soft: sender and receiver that look after one message at once bring it once", "[soft]") {
  sent both;
  std::atomic<bool> ended{false};
  std::thread sender{[&] {
    ibv_wc found{};
    while (!ended) (void)ibv_poll_cq(both.one.sends, 1, &found);
  }};
  for (std::uint64_t id = 2; id < 2000; ++id) {
    REQUIRE(both.other.receive(id, {both.on.piece(64, 8)}) == 0);
    CHECK(status_of(both.other.receives, id) == IBV_WC_SUCCESS);
    while (both.one.send(1, {both.on.piece(0, 8)}) != 0) std::this_thread::yield();
  }
  ended = true;
  sender.join();
}

TEST_CASE("soft: a sender that sleeps for its receives alone tries its sends again", "[soft]") {
  const std::string fabric = fabric_name();
  side here{fabric};
  side there{fabric};
  const sleeper asleep{here};
  end_options with;
  with.channel = asleep.channel;
  with.only_receives_wake = true;
  end one{here, with};
  end other{there};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  here.word(0) = 42;
  REQUIRE(one.send(1, {here.piece(0, 8)}) == 0);
  REQUIRE(ibv_req_notify_cq(one.receives, 0) == 0);
  REQUIRE(other.receive(2, {there.piece(64, 8)}) == 0);
  const auto until = clock::now() + 10s;
  std::optional<ibv_wc> got;
  while (!got && clock::now() < until) {
    REQUIRE(asleep.sleep());
    got = next(other.receives, 0ns);
  }
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 2);
}

TEST_CASE("soft: receives are found by who begins to look where they were many laps ago",
          "[soft]") {
  linked both;
  for (std::uint64_t id = 1; id <= 400; ++id) {
    REQUIRE(both.other.receive(id, {both.there.piece(64, 8)}) == 0);
    REQUIRE(both.one.send(id, {both.here.piece(0, 8)}) == 0);
    REQUIRE(status_of(both.other.receives, id) == IBV_WC_SUCCESS);
    REQUIRE(status_of(both.one.sends, id) == IBV_WC_SUCCESS);
  }
  // As a taker leaves it that was held up between reading this word and writing it.
  auto& queue = *verbena::soft::queue_pair::of(both.other.pair).receives.entry;
  queue.taken.store(3);
  REQUIRE(both.other.receive(401, {both.there.piece(64, 8)}) == 0);
  REQUIRE(both.one.send(401, {both.here.piece(0, 8)}) == 0);
  CHECK(status_of(both.other.receives, 401) == IBV_WC_SUCCESS);
}
