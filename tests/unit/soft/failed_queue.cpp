// SPDX-License-Identifier: BSL-1.0
#include <fcntl.h>

#include <cerrno>

#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft: that a completion queue has failed is told once", "[soft]") {
  side on{fabric_name()};
  REQUIRE(::fcntl(on.native->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_cq* const small = on.calls.create_cq(on.native, 2, nullptr, nullptr, 0);
  REQUIRE(small != nullptr);
  end one{on};
  verbena::soft::queue_pair::of(one.pair).send_queue = &verbena::soft::completion_queue::of(small);
  one.connect(one.pair->qp_num);
  const auto write = [&] {
    return one.rdma(IBV_WR_RDMA_WRITE, 1, on.piece(0, 8),
                    reinterpret_cast<std::uintptr_t>(on.memory + 64), on.region->rkey);
  };
  for (int i = 0; i < 3; ++i) REQUIRE(write() == 0);
  ibv_async_event told{};
  REQUIRE(on.calls.get_async_event(on.native, &told) == 0);
  CHECK(told.event_type == IBV_EVENT_CQ_ERR);
  CHECK(told.element.cq == small);
  on.calls.ack_async_event(&told);
  for (int i = 0; i < 3; ++i) REQUIRE(write() == 0);
  CHECK(on.calls.get_async_event(on.native, &told) == -1);
  CHECK(errno == EAGAIN);
  verbena::soft::queue_pair::of(one.pair).send_queue =
      &verbena::soft::completion_queue::of(one.sends);
  on.calls.destroy_cq(small);
}
