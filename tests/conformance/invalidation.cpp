// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include "fixture/linked.hpp"

using namespace raw;

/// What docs/decisions/0018 rests on: the key of a memory region is not for users to invalidate.
namespace {

/// Memory that a peer writes by its key, and a connection to it.
struct keyed {
  explicit keyed(const bed& bed) : on{bed} { mine.fill(1); }

  /// Whether the key still works, on another connection: the first may have failed.
  bool can_be_written() const {
    linked another{on};
    send_work work{5, IBV_WR_RDMA_WRITE, {mine.piece(0, 8)}};
    another.here.post(work.at(theirs));
    if (!is(another.here.sends().take_one(), 5)) return false;
    // iWARP says that it is sent, not that it is there.
    const auto deadline = clock::now() + soon;
    while (!theirs.same(0, mine, 0, 8) && clock::now() < deadline) std::this_thread::yield();
    return theirs.same(0, mine, 0, 8);
  }

  const bed& on;
  region mine{on, 64, IBV_ACCESS_LOCAL_WRITE};
  region theirs{on, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  linked pair{on};
};

}  // namespace

TEST_CASE("invalidation: which devices say that they have it, and windows", "[invalidation]") {
  VERBENA_BED_OR_SKIP(on);
  CHECK(((on.device.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0) == !on.is_soft());
  CHECK((on.device.max_mw != 0) == on.is_rxe());
}

TEST_CASE("invalidation: not of a region by its owner", "[rc][invalidation]") {
  VERBENA_BED_OR_SKIP(on);
  keyed memory{on};
  end& owner = memory.pair.there;
  send_work work{1, IBV_WR_LOCAL_INV, {}};
  work.invalidate_rkey = memory.theirs.rkey();
  const auto said = owner.try_post(work);
  if (on.is_rxe()) {  // its provider passes everything on
    REQUIRE(said.accepted());
    CHECK(is(owner.sends().take_one(), 1, {IBV_WC_LOC_QP_OP_ERR}));
    CHECK(owner.reaches(IBV_QPS_ERR));
  } else {
    CHECK(said.error == EINVAL);
    CHECK(said.refused == &work);
  }
  CHECK(memory.can_be_written());
}

TEST_CASE("invalidation: not of a region by a peer's send, which is lost", "[rc][invalidation]") {
  VERBENA_BED_OR_SKIP(on);
  keyed memory{on};
  receive_work in{2, {memory.theirs.piece(0, 8)}};
  memory.pair.there.post(in);
  send_work work{1, IBV_WR_SEND_WITH_INV, {memory.mine.piece(0, 8)}};
  work.invalidate_rkey = memory.theirs.rkey();
  const auto said = memory.pair.here.try_post(work);
  if (on.is_soft()) {
    CHECK(said.error == EINVAL);
    CHECK(said.refused == &work);
  } else {
    REQUIRE(said.accepted());
    // The sender is told of success: what fails is the receive.
    CHECK(is(memory.pair.here.sends().take_one(), 1));
    CHECK(is(memory.pair.there.receives().take_one(), 2, {IBV_WC_REM_INV_REQ_ERR}));
  }
  CHECK(memory.can_be_written());
}
