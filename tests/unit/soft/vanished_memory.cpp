// SPDX-License-Identifier: BSL-1.0
// Memory that was registered and is not there any more. An adapter would have held on to it; where
// it can not be reached, the peer is told so and its end fails, as after each refusal but that of a
// sequence (IBTA, responder's class C; on rxe as for a wrong key).
#include <fcntl.h>
#include <sys/mman.h>

#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// A page of the program's own, registered for everything and then taken away; its place is kept,
/// so that nothing else comes there.
struct vanished {
  explicit vanished(side& of) : on{of} {
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    region = on.calls.reg_mr(on.domain, memory, size, on.rights());
    REQUIRE(region != nullptr);
    REQUIRE(::mprotect(memory, size, PROT_NONE) == 0);
  }
  ~vanished() {
    on.calls.dereg_mr(region);
    ::munmap(memory, size);
  }
  vanished(const vanished&) = delete;
  vanished& operator=(const vanished&) = delete;

  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory); }

  static constexpr std::size_t size = 4096;
  side& on;
  void* memory = nullptr;
  ibv_mr* region = nullptr;
};

}  // namespace

TEST_CASE("soft: a peer's memory that is gone fails both ends", "[soft]") {
  const ibv_wr_opcode opcode =
      GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ);
  INFO(opcode);
  linked both;
  const vanished memory{both.there};
  REQUIRE(both.other.receive(9, {}) == 0);
  REQUIRE(both.one.rdma(opcode, 1, both.here.piece(0, 8), memory.address(), memory.region->rkey) ==
          0);
  const auto failed = next(both.one.sends);
  REQUIRE(failed.has_value());
  CHECK(failed->wr_id == 1);
  CHECK(failed->status == IBV_WC_REM_OP_ERR);
  CHECK(failed->vendor_err == static_cast<std::uint32_t>(soft::cause::memory_unmapped));
  CHECK(soft::state_of(*soft::queue_pair::of(both.one.pair).entry) == IBV_QPS_ERR);
  CHECK(soft::state_of(*soft::queue_pair::of(both.other.pair).entry) == IBV_QPS_ERR);
  CHECK(status_of(both.other.receives, 9) == IBV_WC_WR_FLUSH_ERR);
  REQUIRE(::fcntl(both.there.native->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_async_event told{};
  REQUIRE(both.there.calls.get_async_event(both.there.native, &told) == 0);
  CHECK(told.event_type == IBV_EVENT_QP_REQ_ERR);
  CHECK(told.element.qp == both.other.pair);
  both.there.calls.ack_async_event(&told);
  CHECK(both.there.calls.get_async_event(both.there.native, &told) == -1);
}

TEST_CASE("soft: what an unreliable write can not reach is dropped", "[soft]") {
  end_options with;
  with.type = IBV_QPT_UC;
  linked both{with};
  const vanished memory{both.there};
  const ibv_wr_opcode opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM);
  REQUIRE(both.other.receive(9, {both.there.piece(64, 8)}) == 0);
  REQUIRE(both.one.rdma(opcode, 1, both.here.piece(0, 8), memory.address(), memory.region->rkey) ==
          0);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  CHECK(stays_empty(both.other.receives));
  REQUIRE(both.one.send(2, {both.here.piece(0, 8)}) == 0);
  CHECK(status_of(both.one.sends, 2) == IBV_WC_SUCCESS);
  CHECK(status_of(both.other.receives, 9) == IBV_WC_SUCCESS);
}
