// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include "child.hpp"
#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft knobs: the n-th message is lost", "[soft][knobs]") {
  SECTION("for good where nothing tries again") {
    end_options with;
    with.type = IBV_QPT_UC;
    linked both{with, ",drop_message=2"};
    for (std::uint64_t id = 1; id <= 3; ++id) {
      REQUIRE(both.other.receive(id, {both.there.piece(8 * id, 8)}) == 0);
    }
    for (std::uint64_t id = 1; id <= 3; ++id) {
      both.here.word(0) = id;
      REQUIRE(both.one.send(id, {both.here.piece(0, 8)}) == 0);
      CHECK(status_of(both.one.sends, id) == IBV_WC_SUCCESS);
    }
    CHECK(status_of(both.other.receives, 1) == IBV_WC_SUCCESS);
    CHECK(status_of(both.other.receives, 2) == IBV_WC_SUCCESS);
    CHECK(both.there.word(16) == 3);
    CHECK(stays_empty(both.other.receives));
  }
  SECTION("and sent again over RC") {
    linked both{{}, ",drop_message=1"};
    both.here.word(0) = 7;
    REQUIRE(both.write(1) == 0);
    CHECK(both.there.word(0) == 0);
    CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
    CHECK(both.there.word(0) == 7);
  }
}

TEST_CASE("soft knobs: a partition", "[soft][knobs]") {
  linked both;
  both.here.knobs().partitioned = 1;
  REQUIRE(both.write(1) == 0);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_RETRY_EXC_ERR);
}

TEST_CASE("soft knobs: a process killed at its n-th message", "[soft][knobs]") {
  const std::string fabric = fabric_name();
  child sender{[&](child& parent) {
    side there{fabric + ",kill_at_message=2"};
    end other{there};
    parent.say(other.pair->qp_num);
    other.connect(static_cast<std::uint32_t>(parent.hear()));
    other.send(1, {there.piece(0, 8)});
    other.send(2, {there.piece(0, 8)});
    ::_exit(1);
  }};
  side here{fabric};
  end one{here};
  one.connect(static_cast<std::uint32_t>(sender.hear()));
  REQUIRE(one.receive(1, {here.piece(0, 8)}) == 0);
  REQUIRE(one.receive(2, {here.piece(8, 8)}) == 0);
  sender.say(one.pair->qp_num);
  CHECK(status_of(one.receives, 1) == IBV_WC_SUCCESS);
  CHECK(sender.wait() == -SIGKILL);
  CHECK(stays_empty(one.receives));
  REQUIRE(one.send(3, {here.piece(0, 8)}) == 0);
  CHECK(status_of(one.sends, 3) == IBV_WC_RETRY_EXC_ERR);
}

TEST_CASE("soft knobs: held completions come when they are let go", "[soft][knobs]") {
  linked both;
  SECTION("of all queues") {
    both.here.knobs().hold_completions = 1;
    REQUIRE(both.write(1) == 0);
    CHECK(both.there.word(0) == both.here.word(0));
    CHECK(stays_empty(both.one.sends));
    both.here.knobs().hold_completions = 0;
    CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  }
  SECTION("of one, the second made") {
    both.here.knobs().faulty_queue = 2;
    both.here.knobs().hold_completions = 1;
    REQUIRE(both.one.receive(1, {both.here.piece(64, 8)}) == 0);
    REQUIRE(both.other.send(2, {both.there.piece(0, 8)}) == 0);
    REQUIRE(both.write(3) == 0);
    CHECK(status_of(both.one.sends, 3) == IBV_WC_SUCCESS);
    CHECK(status_of(both.other.sends, 2) == IBV_WC_SUCCESS);
    CHECK(stays_empty(both.one.receives));
    both.here.knobs().hold_completions = 0;
    CHECK(status_of(both.one.receives, 1) == IBV_WC_SUCCESS);
  }
}

TEST_CASE("soft knobs: delayed completions", "[soft][knobs]") {
  linked both{{}, ",delay_completions=30000"};
  const auto begun = clock::now();
  REQUIRE(both.write(1) == 0);
  REQUIRE(both.write(2) == 0);
  CHECK(!next(both.one.sends, 0ns).has_value());
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  CHECK(clock::now() - begun >= 30ms);
  CHECK(next(both.one.sends, 0ns).has_value());  // it was there at the first look as well
  const auto again = clock::now();
  REQUIRE(both.write(3) == 0);
  CHECK(status_of(both.one.sends, 3) == IBV_WC_SUCCESS);
  CHECK(clock::now() - again >= 30ms);
}

TEST_CASE("soft knobs: a sleeper wakes for what was held or delayed", "[soft][knobs]") {
  const std::string fabric = fabric_name();
  side here{fabric};
  side there{fabric};
  ibv_comp_channel* const channel = here.calls.create_comp_channel(here.native);
  REQUIRE(channel != nullptr);
  {
    end_options with;
    with.channel = channel;
    end one{here, with};
    end other{there};
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    const bool held = GENERATE(true, false);
    if (held) {
      here.knobs().hold_completions = 1;
    } else {
      here.knobs().delay_completions = 30'000;
    }
    const auto begun = clock::now();
    REQUIRE(one.send(1, {}) == 0);
    REQUIRE(other.receive(2, {}) == 0);
    while (!next(other.receives, 0ns).has_value()) (void)next(one.sends, 0ns);
    REQUIRE(ibv_req_notify_cq(one.sends, 0) == 0);
    REQUIRE(!next(one.sends, 0ns).has_value());
    std::thread lets_go{[&] {
      std::this_thread::sleep_for(30ms);
      here.knobs().hold_completions = 0;
    }};
    ibv_cq* from = nullptr;
    void* own = nullptr;
    CHECK(here.calls.get_cq_event(channel, &from, &own) == 0);  // blocks
    CHECK(clock::now() - begun >= 30ms);
    CHECK(from == one.sends);
    here.calls.ack_cq_events(from, 1);
    CHECK(next(one.sends, 0ns).has_value());
    lets_go.join();
  }
  here.calls.destroy_comp_channel(channel);
}

TEST_CASE("soft knobs: undefined fields of error completions", "[soft][knobs]") {
  linked both{{}, ",poison_errors=1"};
  REQUIRE(both.one.rdma(IBV_WR_RDMA_WRITE, 9, both.here.piece(0, 8), both.remote(), 1) == 0);
  const auto got = next(both.one.sends);
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 9);
  CHECK(got->status == IBV_WC_REM_ACCESS_ERR);
  CHECK(got->qp_num == both.one.pair->qp_num);
  CHECK(got->vendor_err == 0);
  CHECK(got->opcode != IBV_WC_RDMA_WRITE);
  CHECK(got->byte_len != 0);
}

TEST_CASE("soft knobs: the sign of a post's errno", "[soft][knobs]") {
  linked both;
  const auto wrong_post = [&] { return both.one.send(1, std::vector<ibv_sge>(3)); };
  const auto wrong_receive = [&] { return both.one.receive(1, std::vector<ibv_sge>(3)); };
  CHECK(wrong_post() == EINVAL);
  CHECK(wrong_receive() == EINVAL);
  both.here.knobs().negative_errno = 1;
  CHECK(wrong_post() == -EINVAL);
  CHECK(wrong_receive() == -EINVAL);
}

TEST_CASE("soft knobs: queues full before their time", "[soft][knobs]") {
  linked both{{}, ",refuse_early=3"};
  for (std::uint64_t id = 0; id < 5; ++id) {
    CHECK(both.one.receive(id, {}) == 0);
    CHECK(both.one.send(id, {}) == 0);
  }
  CHECK(both.one.receive(5, {}) == ENOMEM);
  CHECK(both.one.send(5, {}) == ENOMEM);
  for (std::uint64_t id = 0; id < 8; ++id) CHECK(both.other.receive(id, {}) == 0);
  CHECK(status_of(both.one.sends, 0) == IBV_WC_SUCCESS);
  CHECK(both.one.send(5, {}) == 0);
}

TEST_CASE("soft knobs: read depths that do not fit the peer's", "[soft][knobs]") {
  end_options with;
  with.reads_asked = 4;
  with.reads_answered = 3;
  const bool strict = GENERATE(false, true);
  linked both{with, strict ? ",strict_reads=1" : ""};
  const bool is_read = GENERATE(true, false);
  REQUIRE(
      (is_read
           ? both.one.rdma(IBV_WR_RDMA_READ, 1, both.here.piece(0, 8), both.remote(), both.key())
           : both.one.fetch_add(1, both.here.piece(0, 8), both.remote(), both.key(), 1)) == 0);
  CHECK(status_of(both.one.sends, 1) == (strict ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS));
}

TEST_CASE("soft knobs: read depths that fit the peer's", "[soft][knobs]") {
  linked both{{}, ",strict_reads=1"};
  REQUIRE(both.one.rdma(IBV_WR_RDMA_READ, 1, both.here.piece(0, 8), both.remote(), both.key()) ==
          0);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
}

TEST_CASE("soft knobs: a piece of length 0 means 2^31 bytes", "[soft][knobs]") {
  SECTION("in a send") {
    linked both{{}, ",zero_length_2g=1"};
    REQUIRE(both.other.receive(1, {both.there.piece(0, 8)}) == 0);
    REQUIRE(both.one.send(1, {both.here.piece(0, 0)}) == 0);
    CHECK(status_of(both.one.sends, 1) == IBV_WC_LOC_PROT_ERR);
  }
  SECTION("not in one of no pieces, nor inline") {
    linked both{{}, ",zero_length_2g=1"};
    REQUIRE(both.other.receive(1, {}) == 0);
    REQUIRE(both.other.receive(2, {}) == 0);
    REQUIRE(both.one.send(1, {}) == 0);
    CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
    REQUIRE(both.one.send(2, {both.here.piece(0, 0)}, IBV_SEND_SIGNALED | IBV_SEND_INLINE) == 0);
    CHECK(status_of(both.one.sends, 2) == IBV_WC_SUCCESS);
  }
  SECTION("in a receive") {
    linked both{{}, "", ",zero_length_2g=1"};
    REQUIRE(both.other.receive(1, {both.there.piece(0, 0)}) == 0);
    REQUIRE(both.one.send(1, {both.here.piece(0, 8)}) == 0);
    CHECK(status_of(both.other.receives, 1) == IBV_WC_LOC_PROT_ERR);
    CHECK(status_of(both.one.sends, 1) == IBV_WC_REM_OP_ERR);
  }
  SECTION("which is nothing without the knob") {
    linked both;
    REQUIRE(both.other.receive(1, {both.there.piece(0, 0)}) == 0);
    REQUIRE(both.one.send(1, {both.here.piece(0, 0)}) == 0);
    CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  }
}
