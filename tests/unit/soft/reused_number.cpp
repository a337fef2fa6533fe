// SPDX-License-Identifier: BSL-1.0
// A queue pair gets the number of the one destroyed before it, whose completions have not been
// polled. They stay, as on rxe (mlx5 takes them away): the knob is for programs that may take them
// for the new one's. The device itself does not.
#include <cerrno>
#include <memory>

#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft knobs: completions of a queue pair whose number comes again", "[soft][knobs]") {
  side on{fabric_name() + ",reuse_numbers=1"};
  ibv_cq* const first = on.calls.create_cq(on.native, 64, nullptr, nullptr, 0);
  ibv_cq* const second = on.calls.create_cq(on.native, 64, nullptr, nullptr, 0);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  const bool in_another = GENERATE(true, false);
  CAPTURE(in_another);
  end_options into;
  into.completions = first;
  auto one = std::make_unique<end>(on, into);
  const std::uint32_t number = one->pair->qp_num;
  const std::uint64_t depth = one->granted.max_send_wr;
  const auto write = [&](std::uint64_t id) {
    return one->rdma(IBV_WR_RDMA_WRITE, id, on.piece(0, 8),
                     reinterpret_cast<std::uintptr_t>(on.memory + 64), on.region->rkey);
  };
  one->connect(number);
  for (std::uint64_t id = 0; id < depth; ++id) REQUIRE(write(id) == 0);
  one.reset();
  into.completions = in_another ? second : first;
  one = std::make_unique<end>(on, into);
  REQUIRE(one->pair->qp_num == number);
  one->connect(number);
  for (std::uint64_t id = 0; id < depth; ++id) REQUIRE(write(100 + id) == 0);
  for (std::uint64_t id = 0; id < depth; ++id) CHECK(status_of(first, id) == IBV_WC_SUCCESS);
  CHECK(write(200) == ENOMEM);  // none of its own has been polled
  CHECK(status_of(into.completions, 100) == IBV_WC_SUCCESS);
  CHECK(write(200) == 0);
  CHECK(write(201) == ENOMEM);
  one.reset();
  on.calls.destroy_cq(first);
  on.calls.destroy_cq(second);
}

TEST_CASE("soft knobs: a queue pair whose number comes again is not thought full",
          "[soft][knobs]") {
  side on{fabric_name() + ",reuse_numbers=1"};
  ibv_cq* const queue = on.calls.create_cq(on.native, 64, nullptr, nullptr, 0);
  REQUIRE(queue != nullptr);
  end_options into;
  into.completions = queue;
  auto one = std::make_unique<end>(on, into);
  const auto write = [&](std::uint64_t id) {
    return one->rdma(IBV_WR_RDMA_WRITE, id, on.piece(0, 8),
                     reinterpret_cast<std::uintptr_t>(on.memory + 64), on.region->rkey);
  };
  one->connect(one->pair->qp_num);
  REQUIRE(write(1) == 0);
  one.reset();
  one = std::make_unique<end>(on, into);
  one->connect(one->pair->qp_num);
  CHECK(status_of(queue, 1) == IBV_WC_SUCCESS);
  CHECK(write(2) == 0);
  CHECK(status_of(queue, 2) == IBV_WC_SUCCESS);
  one.reset();
  on.calls.destroy_cq(queue);
}
