// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include "fixture/linked.hpp"

using namespace raw;

/// What docs/decisions/0018 rests on: the key of a memory region is not for users to invalidate.
namespace {

/// Whether the memory can still be written by its key.
bool is_written(const bed& on, const region& theirs, const region& mine) {
  linked pair{on};
  send_work work{5, IBV_WR_RDMA_WRITE, {mine.piece(0, 8)}};
  pair.here.post(work.at(theirs));
  if (!is(pair.here.sends().take_one(), 5)) return false;
  // iWARP says that it is sent, not that it is there.
  const auto deadline = clock::now() + soon;
  while (!theirs.same(0, mine, 0, 8) && clock::now() < deadline) std::this_thread::yield();
  return theirs.same(0, mine, 0, 8);
}

}  // namespace

TEST_CASE("invalidation: not of a region by its owner", "[rc][invalidation]") {
  VERBENA_BED_OR_SKIP(on);
  region mine{on, 64, IBV_ACCESS_LOCAL_WRITE};
  region theirs{on, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  mine.fill(1);
  linked pair{on};
  send_work work{1, IBV_WR_LOCAL_INV, {}};
  work.invalidate_rkey = theirs.rkey();
  const auto said = pair.there.try_post(work);
  if (on.is_rxe()) {  // its provider passes everything on
    REQUIRE(said.accepted());
    CHECK(is(pair.there.sends().take_one(), 1, {IBV_WC_LOC_QP_OP_ERR}));
  } else {
    CHECK(said.error == EINVAL);
    CHECK(said.refused == &work);
  }
  CHECK(is_written(on, theirs, mine));
}

TEST_CASE("invalidation: not of a region by a peer's send, which is lost", "[rc][invalidation]") {
  VERBENA_BED_OR_SKIP(on);
  region mine{on, 64, IBV_ACCESS_LOCAL_WRITE};
  region theirs{on, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  mine.fill(1);
  linked pair{on};
  receive_work in{2, {theirs.piece(0, 8)}};
  pair.there.post(in);
  send_work work{1, IBV_WR_SEND_WITH_INV, {mine.piece(0, 8)}};
  work.invalidate_rkey = theirs.rkey();
  const auto said = pair.here.try_post(work);
  if (on.is_soft()) {
    CHECK(said.error == EINVAL);
    CHECK(said.refused == &work);
  } else {
    REQUIRE(said.accepted());
    // The sender is told of success: what fails is the receive.
    CHECK(is(pair.here.sends().take_one(), 1));
    CHECK(is(pair.there.receives().take_one(), 2, {IBV_WC_REM_INV_REQ_ERR}));
  }
  CHECK(is_written(on, theirs, mine));
}
