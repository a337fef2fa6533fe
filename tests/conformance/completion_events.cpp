// SPDX-License-Identifier: BSL-1.0
#include <atomic>
#include <set>
#include <thread>

#include "fixture/channel.hpp"
#include "fixture/linked.hpp"

using namespace raw;

namespace {

/// Two queue pairs, the queues of one of which are on a channel.
struct watched {
  explicit watched(const bed& on, end_options chosen = {})
      : events{on},
        sends{on, 64, events.native(), this},
        receives{on, 64, events.native(), &chosen},
        memory{on, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
        pair{on,
             [&] {
               chosen.send_queue = sends.native();
               chosen.receive_queue = receives.native();
               return chosen;
             }(),
             {}} {}

  void receive_one(std::uint64_t id) { pair.here.post(receive_work{id, {memory.piece(0, 64)}}); }
  void hear(std::uint64_t id, unsigned flags = 0) {
    pair.there.post(send_work{id, IBV_WR_SEND, {memory.piece(64, 8)}, IBV_SEND_SIGNALED | flags});
    CHECK(is(pair.there.sends().take_one(), id));
  }
  void write(std::uint64_t id, unsigned flags = 0) {
    pair.here.post(
        send_work{id, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}, IBV_SEND_SIGNALED | flags}.at(memory,
                                                                                             1024));
  }

  channel events;
  queue sends;
  queue receives;
  region memory;
  linked pair;
};

}  // namespace

TEST_CASE("events: one for each arming", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  test.write(1);
  test.sends.take_one();
  CHECK(test.events.stays_silent());  // never armed
  test.sends.arm();
  CHECK(test.events.stays_silent());
  test.write(2);
  test.write(3);
  CHECK(test.events.take() == test.sends.native());
  CHECK(test.events.stays_silent());
  test.sends.take(2);
  test.write(4);
  test.sends.take_one();
  CHECK(test.events.stays_silent());
  test.sends.arm();
  test.sends.arm();
  test.write(5);
  CHECK(test.events.take() == test.sends.native());
  test.sends.take_one();
  CHECK(test.events.stays_silent());
}

TEST_CASE("events: arming does not hear of what was there before", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  test.write(1);
  test.sends.take_one();
  test.receive_one(1);
  test.receive_one(2);
  test.hear(3);
  std::this_thread::sleep_for(a_while);  // it has come, and stays
  test.receives.arm();
  CHECK(test.events.stays_silent());
  test.hear(4);
  CHECK(test.events.take() == test.receives.native());
  test.receives.take(2);
}

TEST_CASE("events: arm and then look loses no wake-up", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  constexpr std::uint64_t count = 200;
  std::uint64_t seen = 0;
  test.receives.arm();
  std::atomic<std::uint64_t> receives{1};  // without one, iWARP ends the connection
  test.receive_one(0);
  test.write(1000);  // the active side of iWARP is the first to send
  std::thread sender{[&] {
    for (std::uint64_t i = 0; i < count; ++i) {
      while (receives.load() <= i) std::this_thread::yield();
      send_work work{i, IBV_WR_SEND, {test.memory.piece(64, 8)}};
      ibv_send_wr* bad = nullptr;
      // One message at a time: each is a chance to be missed.
      if (ibv_post_send(test.pair.there.native(), &work, &bad) != 0) return;
      ibv_wc done{};
      while (ibv_poll_cq(test.pair.there.sends().native(), 1, &done) == 0)
        std::this_thread::yield();
    }
  }};
  bool lost = false;
  while (seen < count && !lost) {
    lost = test.events.take() == nullptr;
    test.receives.arm();
    for (;;) {
      const auto got = test.receives.poll(1);
      if (got.empty()) break;
      if (got.front().status != IBV_WC_SUCCESS) lost = true;
      ++seen;
      ibv_recv_wr* bad = nullptr;
      receive_work work{seen, {test.memory.piece(0, 64)}};
      (void)ibv_post_recv(test.pair.here.native(), &work, &bad);
      ++receives;
    }
  }
  if (lost) receives = count;
  sender.join();
  CHECK_FALSE(lost);
  CHECK(seen == count);
}

TEST_CASE("FC-11 solicited arming hears solicited messages alone", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  test.write(1);  // the active side of iWARP is the first to send
  test.sends.take_one();
  for (std::uint64_t i = 0; i < 4; ++i) test.receive_one(i);
  test.sends.arm(1);
  test.receives.arm(1);
  // Sends that succeed never count, whatever flag they have; on siw they do.
  test.write(2, on.iwarp ? 0U : unsigned{IBV_SEND_SOLICITED});
  CHECK(is(test.sends.take_one(), 2));
  test.hear(10);
  CHECK(test.events.stays_silent());
  test.hear(11, IBV_SEND_SOLICITED);
  ibv_cq* const from = test.events.take(on.iwarp ? std::chrono::nanoseconds{5 * a_while} : soon);
  if (on.iwarp && from == nullptr)
    VERBENA_SKIP(on.name + ": solicited messages do not wake who waits for them alone");
  CHECK(from == test.receives.native());
  test.hear(12, IBV_SEND_SOLICITED);
  CHECK(test.events.stays_silent());
  CHECK(is(test.receives.take(3).front(), 0));
}

TEST_CASE("events: solicited write with immediate", "[rc][events][imm]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": no immediates, see the tests of their transfer");
  watched test{on};
  test.receive_one(1);
  test.receive_one(2);
  test.receives.arm(1);
  const auto write = [&](unsigned flags) {
    test.pair.there.post(send_work{
        1, IBV_WR_RDMA_WRITE_WITH_IMM, {test.memory.piece(0, 8)}, IBV_SEND_SIGNALED | flags}
                             .at(test.memory, 512));
    CHECK(is(test.pair.there.sends().take_one(), 1));
  };
  write(0);
  CHECK(test.events.stays_silent());
  write(IBV_SEND_SOLICITED);
  CHECK(test.events.take() == test.receives.native());
  test.receives.take(2);
}

TEST_CASE("events: a failure is solicited", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  // By the book on both queues; rxe counts failed receives alone, siw neither.
  if (on.iwarp) VERBENA_SKIP(on.name + ": failures do not wake who waits for solicited messages");
  watched test{on};
  test.receive_one(1);
  test.pair.here.post(send_work{2, IBV_WR_SEND, {test.memory.piece(0, 8)}});
  test.receives.arm(1);
  test.sends.arm(1);
  REQUIRE(test.pair.here.modify(IBV_QPS_ERR) == 0);
  std::set<ibv_cq*> from;
  for (int i = 0; i < (on.is_rxe() ? 1 : 2); ++i) from.insert(test.events.take());
  CHECK(from.count(test.receives.native()) == 1);
  if (!on.is_rxe()) CHECK(from.count(test.sends.native()) == 1);
  CHECK(is(test.receives.take_one(), 1, {IBV_WC_WR_FLUSH_ERR}));
}

TEST_CASE("FC-10 two queues on one channel, each with its own events", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  test.write(1);
  test.sends.take_one();
  test.receive_one(1);
  test.sends.arm();
  test.receives.arm();
  test.write(2);
  test.hear(3);
  std::set<ibv_cq*> from;
  ibv_cq* first = test.events.next();
  ibv_cq* second = test.events.next();
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(first != second);
  // Acknowledged late, each on its own: destruction, which waits for it, ends.
  test.sends.take_one();
  test.receives.take_one();
  on.calls.ack_cq_events(second, 1);
  on.calls.ack_cq_events(first, 1);
}

TEST_CASE("FC-10 many events acknowledged at once", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  for (std::uint64_t i = 0; i < 5; ++i) {
    test.sends.arm();
    test.write(i);
    REQUIRE(test.events.next() == test.sends.native());
    test.sends.take_one();
  }
  on.calls.ack_cq_events(test.sends.native(), 3);
  on.calls.ack_cq_events(test.sends.native(), 2);
}

TEST_CASE("events: destroying a queue waits for its events to be acknowledged", "[events]") {
  VERBENA_BED_OR_SKIP(on);
  channel events{on};
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  queue sends{on, 16, events.native()};
  {
    end_options chosen;
    chosen.send_queue = sends.native();
    linked pair{on, chosen, {}};
    sends.arm();
    pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}}.at(memory, 8));
    REQUIRE(events.next() == sends.native());
  }
  ibv_cq* const native = sends.native();
  std::thread late{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{80});
    on.calls.ack_cq_events(native, 1);
  }};
  const auto begun = clock::now();
  sends.destroy();
  CHECK(clock::now() - begun >= std::chrono::milliseconds{60});
  late.join();
}

TEST_CASE("events: a failure of the peer wakes a sleeper", "[rc][events]") {
  VERBENA_BED_OR_SKIP(on);
  watched test{on};
  test.receive_one(1);
  test.receives.arm();
  if (on.iwarp) {
    REQUIRE(test.pair.there.modify(IBV_QPS_ERR) == 0);
  } else {
    // The peer's illegal write fails both ends.
    test.pair.there.post(
        send_work{1, IBV_WR_RDMA_WRITE, {test.memory.piece(0, 8)}}.at(0x1000, 0x77777));
  }
  CHECK(test.events.take() == test.receives.native());
  CHECK(is(test.receives.take_one(), 1, {IBV_WC_WR_FLUSH_ERR}));
}

TEST_CASE("events: a sender asleep hears that nobody answers", "[rc][events][retry]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": the connection of iWARP ends with its peer");
  end_options chosen;
  chosen.retries = 1;
  chosen.timeout = 12;  // 17 ms
  watched test{on, chosen};
  test.pair.there.destroy();
  test.sends.arm();
  test.write(1);
  CHECK(test.events.take() == test.sends.native());
  CHECK(is(test.sends.take_one(), 1, {IBV_WC_RETRY_EXC_ERR}));
}

TEST_CASE("events: a sender asleep hears that a late receive took its message",
          "[rc][events][rnr]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": iWARP has no receiver-not-ready");
  watched test{on};
  test.sends.arm();
  test.pair.here.post(send_work{1, IBV_WR_SEND, {test.memory.piece(0, 8)}});
  CHECK(test.events.stays_silent());
  test.pair.there.post(receive_work{2, {test.memory.piece(64, 64)}});
  CHECK(test.events.take() == test.sends.native());
  CHECK(is(test.sends.take_one(), 1));
}
