// SPDX-License-Identifier: BSL-1.0
#include "child.hpp"
#include "side.hpp"
#include "taker.hpp"
#include "taking.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

std::uint32_t place(const side& of) { return soft::place_of(context::of(of.native).fabric->me()); }

}  // namespace

TEST_CASE("soft: a datagram receive that a dead process had taken", "[soft]") {
  const std::string fabric = fabric_name();
  taker first{fabric};
  end_options with;
  with.type = IBV_QPT_UD;
  side here{fabric};
  end one{here, with};
  one.connect(0);
  REQUIRE(one.receive(7, {here.piece(0, 128)}) == 0);
  first.take_and_die(one.pair->qp_num);
  side there{fabric};  // takes the place of the dead process
  CHECK(place(there) == 1);
  end other{there, with};
  other.connect(0);
  ibv_ah_attr to = other.address();
  ibv_ah* const handle = there.calls.create_ah(there.domain, &to);
  there.word(0) = 42;
  std::optional<ibv_wc> got;
  for (std::uint64_t id = 1; !got && id < 1000; ++id) {  // datagrams are lost at first
    REQUIRE(other.send_to(id, handle, one.pair->qp_num, {there.piece(0, 8)}) == 0);
    CHECK(status_of(other.sends, id) == IBV_WC_SUCCESS);
    got = next(one.receives, 1ms);
  }
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 7);
  CHECK(here.word(40) == 42);
  CHECK(stays_empty(one.receives));
  there.calls.destroy_ah(handle);
}

TEST_CASE("soft: a shared receive that a dead process had taken", "[soft]") {
  const std::string fabric = fabric_name();
  taker first{fabric};
  taker teller{fabric, tell};
  side here{fabric};
  ibv_srq_init_attr asked{};
  asked.attr = {2, 1, 0};
  ibv_srq* const shared = here.calls.create_srq(here.domain, &asked);
  REQUIRE(shared != nullptr);
  {
    end_options with;
    with.shared_receives = shared;
    end one{here, with};
    side there{fabric};
    end other{there};
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    const auto receive = [&](std::uint64_t id) {
      ibv_sge piece = here.piece(64 * id, 64);
      ibv_recv_wr work{};
      work.wr_id = id;
      work.sg_list = &piece;
      work.num_sge = 1;
      ibv_recv_wr* refused = nullptr;
      return ibv_post_srq_recv(shared, &work, &refused);
    };
    const auto send = [&](std::uint64_t word) {
      there.word(0) = word;
      REQUIRE(other.send(word, {there.piece(0, 8)}) == 0);
      CHECK(status_of(other.sends, word) == IBV_WC_SUCCESS);
    };
    REQUIRE(receive(1) == 0);
    SECTION("goes to the next write with an immediate") {
      first.take_and_die(one.pair->qp_num);
      ibv_send_wr work{};
      work.wr_id = 5;
      work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      work.send_flags = IBV_SEND_SIGNALED;
      work.wr.rdma = {reinterpret_cast<std::uintptr_t>(here.memory), here.region->rkey};
      there.word(0) = 13;
      REQUIRE(other.post(work, {there.piece(0, 8)}) == 0);
      CHECK(status_of(other.sends, 5) == IBV_WC_SUCCESS);
      CHECK(status_of(one.receives, 1) == IBV_WC_SUCCESS);
      CHECK(here.word(0) == 13);
    }
    SECTION("goes to the next sender") {
      first.take_and_die(one.pair->qp_num);
      send(11);
      CHECK(status_of(one.receives, 1) == IBV_WC_SUCCESS);
      CHECK(here.word(64) == 11);
    }
    SECTION("is its owner's once it has been told of") {
      teller.take_and_die(one.pair->qp_num);
      soft::taken_receive taken;
      CHECK(take(there, one.pair->qp_num, taken) == soft::taking::empty);
      REQUIRE(receive(2) == 0);
      CHECK(receive(3) == ENOMEM);  // not before its completion has been polled
      CHECK(status_of(one.receives, 1) == IBV_WC_SUCCESS);
      CHECK(receive(3) == 0);
      send(12);
      send(13);
      CHECK(status_of(one.receives, 2) == IBV_WC_SUCCESS);
      CHECK(status_of(one.receives, 3) == IBV_WC_SUCCESS);
      CHECK(here.word(128) == 12);
      CHECK(here.word(192) == 13);
    }
    SECTION("does not keep its owner from posting") {
      REQUIRE(receive(2) == 0);
      first.take_and_die(one.pair->qp_num);
      const side again{fabric};  // in the place of the dead process
      send(11);
      CHECK(status_of(one.receives, 2) == IBV_WC_SUCCESS);
      CHECK(receive(3) == 0);
      CHECK(receive(4) == ENOMEM);  // there are two of them again
      send(12);
      send(13);
      CHECK(status_of(one.receives, 1) == IBV_WC_SUCCESS);
      CHECK(status_of(one.receives, 3) == IBV_WC_SUCCESS);
      CHECK(here.word(64) == 12);
      CHECK(here.word(192) == 13);
    }
    CHECK(stays_empty(one.receives));
  }
  here.calls.destroy_srq(shared);
}

TEST_CASE("soft: a completion that a process in the place of a dead one did not claim", "[soft]") {
  const std::string fabric = fabric_name();
  child first{[&](child& parent) {
    const auto index = static_cast<std::uint32_t>(parent.hear());
    const side on{fabric};
    soft::fabric& shared = *context::of(on.native).fabric;
    soft::completion_queue_entry& queue = shared.shared().completion_queues[index];
    const std::scoped_lock guard{shared.work_on(0)};
    const soft::ring_view ring = soft::look(shared, queue.ring, queue.owner);
    auto* const slots = reinterpret_cast<soft::completion_slot*>(ring.base);
    soft::claims_of(slots, ring.mask)[0] = soft::make_turn(0, shared.me(), soft::claimed);
    queue.tail = 1;
    parent.say(1);
    parent.hear();
  }};
  side here{fabric};
  end one{here};
  first.say(one.sends->handle);
  REQUIRE(first.hear() == 1);
  first.end();
  side there{fabric};
  CHECK(place(there) == 1);
  end other{there};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  REQUIRE(other.receive(1, {}) == 0);
  REQUIRE(one.send(2, {}) == 0);
  CHECK(status_of(one.sends, 2) == IBV_WC_SUCCESS);
}

TEST_CASE("soft: what a dead process left is not given away while a sender is at work on it",
          "[soft]") {
  const std::string fabric = fabric_name();
  child dying{[&](child& parent) {
    side on{fabric};
    const end other{on};
    parent.say(other.pair->qp_num);
    parent.hear();
  }};
  const auto number = static_cast<std::uint32_t>(dying.hear());
  side here{fabric};
  end one{here};
  one.connect(number);
  const auto owner = [&] {
    const auto& pairs = context::of(here.native).fabric->shared().queue_pairs;
    return pairs[number % soft::queue_pair_limit].owner.load();
  };
  const std::uint32_t dead = owner();
  soft::queue_pair& sender = soft::queue_pair::of(one.pair);
  sender.lock();  // as it has while it copies a message
  dying.end();
  {
    const side joins{fabric};
    CHECK(owner() == dead);
  }
  sender.unlock();
  const side joins{fabric};
  CHECK(owner() == 0);
}

TEST_CASE("soft: nothing is completed on the queue of a process that was not sent to", "[soft]") {
  linked both;
  side third{context::of(both.here.native).device.name};
  end uninvolved{third};
  soft::queue_pair::of(both.other.pair).entry->completion_queue = uninvolved.receives->handle;
  REQUIRE(both.other.receive(1, {}) == 0);
  REQUIRE(both.one.send(2, {}) == 0);
  CHECK(status_of(both.one.sends, 2) == IBV_WC_SUCCESS);
  CHECK(stays_empty(uninvolved.receives));
}
