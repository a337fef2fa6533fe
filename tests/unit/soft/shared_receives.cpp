// SPDX-License-Identifier: BSL-1.0
#include <poll.h>

#include <new>

#include "interrupted.hpp"
#include "side.hpp"
#include "taker.hpp"
#include "taking.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// A shared receive queue of a domain.
struct shared {
  shared(side& of, ibv_pd* domain, std::uint32_t depth) : on{of} {
    ibv_srq_init_attr asked{};
    asked.attr = {depth, 1, 0};
    queue = on.calls.create_srq(domain, &asked);
    REQUIRE(queue != nullptr);
  }
  ~shared() { on.calls.destroy_srq(queue); }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;

  int receive(std::uint64_t id, ibv_sge* piece) const {
    ibv_recv_wr work{};
    work.wr_id = id;
    work.sg_list = piece;
    work.num_sge = piece == nullptr ? 0 : 1;
    ibv_recv_wr* refused = nullptr;
    return ibv_post_srq_recv(queue, &work, &refused);
  }
  end_options options() const {
    end_options with;
    with.shared_receives = queue;
    return with;
  }

  side& on;
  ibv_srq* queue = nullptr;
};

}  // namespace

TEST_CASE("soft: the memory of shared receives is of the shared queue's domain", "[soft]") {
  side on{fabric_name()};
  ibv_pd* const domain = on.calls.alloc_pd(on.native);
  REQUIRE(domain != nullptr);
  const auto receive_into = [&](ibv_mr* region, ibv_wc_status expected) {
    const shared receives{on, domain, 2};
    end one{on};
    end other{on, receives.options()};
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(on.memory) + 64, 64, region->lkey};
    for (const std::uint32_t length : {8U, 32U}) {  // carried and not
      REQUIRE(receives.receive(length, &piece) == 0);
      REQUIRE(one.send(length, {on.piece(0, length)}) == 0);
      CHECK(status_of(other.receives, length) == expected);
      if (expected != IBV_WC_SUCCESS) break;
    }
  };
  ibv_mr* const its = on.calls.reg_mr(domain, on.memory, side::bytes, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(its != nullptr);
  receive_into(its, IBV_WC_SUCCESS);
  receive_into(on.region, IBV_WC_LOC_PROT_ERR);
  CHECK(on.calls.dereg_mr(its) == 0);
  CHECK(on.calls.dealloc_pd(domain) == 0);
}

TEST_CASE("soft: a receive is not taken over while its owner uses its slot again", "[soft]") {
  const std::string fabric = fabric_name();
  taker dying{fabric, tell};
  side here{fabric};
  side there{fabric};
  const shared receives{here, here.domain, 1};
  end one{here, receives.options()};
  end other{there};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  REQUIRE(receives.receive(1, nullptr) == 0);
  dying.take_and_die(one.pair->qp_num);  // before it gave back what it had told of
  CHECK(status_of(one.receives, 1) == IBV_WC_SUCCESS);
  std::this_thread::sleep_for(10ms);  // until it is known to be dead
  soft::taking by_another = soft::taking::got;
  soft::taken_receive taken;
  interrupting_memory touched{[&] { by_another = take(there, one.pair->qp_num, taken); }};
  auto* const piece = new (touched.second_page()) ibv_sge{};
  touched.arm();
  REQUIRE(receives.receive(2, piece) == 0);  // which reads it when the slot is half written
  CHECK(touched.has_been_touched());
  CHECK(by_another == soft::taking::empty);
  REQUIRE(other.send(3, {}) == 0);
  CHECK(status_of(other.sends, 3) == IBV_WC_SUCCESS);
  CHECK(status_of(one.receives, 2) == IBV_WC_SUCCESS);
}

TEST_CASE("soft: a shared queue's limit is told of if who reached it died before he said so",
          "[soft]") {
  side on{fabric_name()};
  const shared receives{on, on.domain, 2};
  end one{on, receives.options()};
  soft::shared_receive_queue::of(receives.queue).queue.entry->limit = soft::limit_reached;
  for (int i = 0; i < 1000; ++i) {
    ibv_wc found{};
    REQUIRE(ibv_poll_cq(one.receives, 1, &found) == 0);
  }
  pollfd look{on.native->async_fd, POLLIN, 0};
  CHECK(::poll(&look, 1, 0) == 1);
  ibv_srq_attr is{};
  REQUIRE(on.calls.query_srq(receives.queue, &is) == 0);
  CHECK(is.srq_limit == 0);
  ibv_async_event told{};
  REQUIRE(on.calls.get_async_event(on.native, &told) == 0);
  CHECK(told.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  on.calls.ack_async_event(&told);
}

TEST_CASE("soft: a shared receive brings what was sent before it", "[soft]") {
  side on{fabric_name()};
  const shared receives{on, on.domain, 2};
  end one{on};
  end other{on, receives.options()};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  on.word(0) = 42;
  REQUIRE(one.send(1, {on.piece(0, 8)}) == 0);
  ibv_sge piece = on.piece(64, 8);
  REQUIRE(receives.receive(2, &piece) == 0);
  CHECK(on.word(64) == 42);  // before anybody polls
  CHECK(status_of(other.receives, 2) == IBV_WC_SUCCESS);
  CHECK(status_of(one.sends, 1) == IBV_WC_SUCCESS);
}
