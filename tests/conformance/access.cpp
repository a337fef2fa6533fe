// SPDX-License-Identifier: BSL-1.0
#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fixture/linked.hpp"

using namespace raw;

/// What a request that the peer must not carry out ends with. The requester's status is the
/// answer to it: REM_INV_REQ where the queue pair does not take the operation, REM_ACCESS where
/// the memory does not. iWARP has no such answers, only Terminate: siw completes what can not be
/// answered (writes) with success, reads as flushed or with a general or access error.
namespace {

int usable(const bed& on, int access) {
  return on.iwarp ? access & ~int{IBV_ACCESS_REMOTE_ATOMIC} : access;
}

struct one_sided {
  ibv_wr_opcode opcode;
  int right;
  const char* name;
};
constexpr one_sided operations[]{{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE, "write"},
                                 {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, "read"},
                                 {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC, "swap"},
                                 {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC, "add"}};

void post(end& by, const one_sided& what, const region& mine, std::uint64_t address,
          std::uint32_t key, std::uint64_t id = 1) {
  send_work work{id, what.opcode, {mine.piece(0, 8)}};
  if (what.right == IBV_ACCESS_REMOTE_ATOMIC)
    work.atomic(address, key, 1, 1);
  else
    work.at(address, key);
  by.post(work);
}

/// The operation has failed at the requester with one of the statuses, and done nothing. The end
/// that refused it fails too.
void failed(const bed& on, linked& pair, const region& theirs, const one_sided& what,
            std::initializer_list<ibv_wc_status> statuses) {
  const ibv_wc done = pair.here.sends().take_one();
  INFO(text(done));
  CHECK(done.wr_id == 1);
  if (on.iwarp) {
    if (what.opcode == IBV_WR_RDMA_READ) CHECK(done.status != IBV_WC_SUCCESS);
  } else {
    CHECK(is(done, 1, statuses));
    CHECK(pair.here.reaches(IBV_QPS_ERR));
    CHECK(pair.there.reaches(IBV_QPS_ERR));
  }
  // Nothing may have been written, not even in part; and what follows does not pass.
  std::this_thread::sleep_for(on.iwarp ? std::chrono::milliseconds{20}
                                       : std::chrono::milliseconds{});
  CHECK(theirs.zero(0, theirs.size()));
}

bool skips(const bed& on, const one_sided& what) {
  return on.iwarp && what.right == IBV_ACCESS_REMOTE_ATOMIC;
}

}  // namespace

TEST_CASE("FC-26 FC-17 rights of queue pair and region in all combinations", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  for (const one_sided& what : operations) {
    if (skips(on, what)) continue;
    for (const bool pair_allows : {false, true}) {
      for (const bool region_allows : {false, true}) {
        INFO(what.name << ", queue pair " << pair_allows << ", region " << region_allows);
        constexpr int remote =
            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
        // Every other right is there: it is this one that counts.
        region theirs{
            on, 64,
            usable(on, IBV_ACCESS_LOCAL_WRITE | (region_allows ? remote : remote & ~what.right))};
        region mine{on, 64, usable(on, all_rights)};
        end_options peer;
        peer.access = pair_allows ? remote : remote & ~what.right;
        linked pair{on, {}, peer};
        post(pair.here, what, mine, theirs.address(), theirs.rkey());
        // siw asks neither its queue pair nor, for reads, the region.
        const bool asks_nobody = on.iwarp && what.opcode == IBV_WR_RDMA_READ;
        if (asks_nobody || ((pair_allows || on.iwarp) && region_allows)) {
          const ibv_wc done = pair.here.sends().take_one();
          CHECK(is(done, 1));
        } else {
          failed(on, pair, theirs, what,
                 pair_allows ? std::initializer_list{IBV_WC_REM_ACCESS_ERR}
                             : std::initializer_list{IBV_WC_REM_INV_REQ_ERR});
        }
      }
    }
  }
}

TEST_CASE("access: keys and ranges that are wrong", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  ibv_pd* const other = on.calls.alloc_pd(on.context);
  REQUIRE(other != nullptr);
  {
    for (const one_sided& what : operations) {
      if (skips(on, what)) continue;
      for (const char* const wrong :
           {"key", "before", "after", "across", "wraps", "domain", "gone"}) {
        INFO(what.name << ", wrong: " << wrong);
        const std::string is_wrong{wrong};
        region theirs{on, 4096, usable(on, all_rights)};
        region foreign{on, 4096, usable(on, all_rights), other};
        region mine{on, 64, usable(on, all_rights)};
        mine.fill(1);
        linked pair{on};
        std::uint64_t address = theirs.address(64);
        std::uint32_t key = theirs.rkey();
        if (is_wrong == "key") key ^= 0x5a5a5a5a;
        if (is_wrong == "before") address = theirs.address() - 8;
        if (is_wrong == "after") address = theirs.address() + 4096;
        if (is_wrong == "across") address = theirs.address() + 4096 - 4;
        if (is_wrong == "across" && what.right == IBV_ACCESS_REMOTE_ATOMIC) continue;  // unaligned
        if (is_wrong == "wraps") address = ~std::uint64_t{7};
        if (is_wrong == "domain") {
          address = foreign.address();
          key = foreign.rkey();
        }
        if (is_wrong == "gone") theirs.deregister();
        post(pair.here, what, mine, address, key);
        failed(on, pair, is_wrong == "domain" ? foreign : theirs, what, {IBV_WC_REM_ACCESS_ERR});
      }
    }
  }
  CHECK(on.calls.dealloc_pd(other) == 0);
}

TEST_CASE("access: a write that leaves its region writes nothing of it", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  region theirs{on, 8192, usable(on, all_rights)};
  region mine{on, 16384, usable(on, all_rights)};
  mine.fill(1);
  linked pair{on};
  pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {mine.piece(0, 8193)}}.at(theirs));
  failed(on, pair, theirs, operations[0], {IBV_WC_REM_ACCESS_ERR});
}

TEST_CASE("FC-19 the local key is looked up, in its domain and range", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  ibv_pd* const other = on.calls.alloc_pd(on.context);
  REQUIRE(other != nullptr);
  for (const char* const wrong : {"key", "before", "after", "across", "domain", "gone"}) {
    for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      INFO("opcode " << opcode << ", wrong: " << wrong);
      const std::string is_wrong{wrong};
      region mine{on, 4096, usable(on, all_rights)};
      region foreign{on, 4096, usable(on, all_rights), other};
      region theirs{on, 4096, usable(on, all_rights)};
      region in{on, 4096, IBV_ACCESS_LOCAL_WRITE};
      linked pair{on};
      pair.there.post(receive_work{9, {in.piece()}});
      ibv_sge piece = mine.piece(0, 64);
      if (is_wrong == "key") piece.lkey ^= 0x5a5a5a5a;
      if (is_wrong == "before") piece.addr -= 8;
      if (is_wrong == "after") piece.addr += 4096;
      if (is_wrong == "across") piece.addr += 4096 - 63;
      if (is_wrong == "domain") piece = foreign.piece(0, 64);
      if (is_wrong == "gone") mine.deregister();
      pair.here.post(send_work{1, opcode, {piece}}.at(theirs));
      const ibv_wc done = pair.here.sends().take_one();
      // LOC_PROT by the book, for sends and writes on rxe LOC_QP_OP. siw finds out while it sends:
      // any failure.
      if (on.iwarp) {
        CHECK(done.wr_id == 1);
        CHECK(done.status != IBV_WC_SUCCESS);
      } else {
        CHECK(is(done, 1,
                 {IBV_WC_LOC_PROT_ERR, on.is_rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR}));
        CHECK(pair.here.reaches(IBV_QPS_ERR));
      }
      CHECK(theirs.zero(0, 4096));
      CHECK(in.zero(0, 4096));
    }
  }
  CHECK(on.calls.dealloc_pd(other) == 0);
}

TEST_CASE("access: memory that is filled needs local write", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  region source{on, 64, usable(on, all_rights)};
  source.fill(1);
  region read_only{on, 64, IBV_ACCESS_REMOTE_READ};
  SECTION("a receive") {
    linked pair{on};
    pair.there.post(receive_work{1, {read_only.piece()}});
    pair.here.post(send_work{2, IBV_WR_SEND, {source.piece()}});
    const ibv_wc got = pair.there.receives().take_one();
    // LOC_PROT by the book, LOC_QP_OP on rxe, any failure on siw. The sender hears REM_OP, on
    // iWARP perhaps nothing.
    CHECK(got.wr_id == 1);
    if (on.iwarp)
      CHECK(got.status != IBV_WC_SUCCESS);
    else
      CHECK(is(got, 1, {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR}));
    const ibv_wc sent = pair.here.sends().take_one();
    if (!on.iwarp) CHECK(is(sent, 2, {IBV_WC_REM_OP_ERR}));
  }
  SECTION("a read") {
    linked pair{on};
    pair.here.post(send_work{2, IBV_WR_RDMA_READ, {read_only.piece()}}.at(source));
    const ibv_wc done = pair.here.sends().take_one();
    CHECK(done.wr_id == 2);
    if (on.iwarp)
      CHECK(done.status != IBV_WC_SUCCESS);
    else
      CHECK(is(done, 2, {IBV_WC_LOC_PROT_ERR}));
  }
  SECTION("an atomic") {
    if (!on.iwarp) {
      linked pair{on};
      pair.here.post(send_work{2, IBV_WR_ATOMIC_FETCH_AND_ADD, {read_only.piece(0, 8)}}.atomic(
          source.address(), source.rkey(), 1));
      CHECK(is(pair.here.sends().take_one(), 2, {IBV_WC_LOC_PROT_ERR}));
    }
  }
  CHECK(read_only.zero(0, 64));
}

TEST_CASE("FC-17 a source needs no rights at all", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 64, 0};
  region in{on, 64, usable(on, all_rights)};
  linked pair{on};
  out.fill(5);
  pair.there.post(receive_work{1, {in.piece(0, 32)}});
  pair.here.post(send_work{2, IBV_WR_SEND, {out.piece(0, 32)}});
  CHECK(is(pair.there.receives().take_one(), 1));
  pair.here.post(send_work{3, IBV_WR_RDMA_WRITE, {out.piece(32, 32)}}.at(in, 32));
  pair.here.sends().take(2);
  CHECK(in.same(0, out, 0, 64));
}

TEST_CASE("access: memory that is not there, or may not be written, is not registered",
          "[access]") {
  VERBENA_BED_OR_SKIP(on);
  constexpr std::size_t page = 4096;
  void* const mapped =
      ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* const first = static_cast<std::byte*>(mapped);
  REQUIRE(::mprotect(first + page, page, PROT_READ) == 0);
  REQUIRE(::munmap(first + 2 * page, page) == 0);
  const auto errno_of = [&](std::byte* from, std::size_t length, int access) {
    errno = 0;
    ibv_mr* const made = on.calls.reg_mr(on.domain, from, length, access);
    const int number = errno;
    if (made == nullptr) return number;
    CHECK(on.calls.dereg_mr(made) == 0);
    return 0;
  };
  CHECK(errno_of(first, page, IBV_ACCESS_LOCAL_WRITE) == 0);
  CHECK(errno_of(first, 2 * page, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(errno_of(first + page, page, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(errno_of(first + 2 * page, page, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  CHECK(errno_of(first, 3 * page, 0) == EFAULT);
  ::munmap(first, 2 * page);
}

TEST_CASE("FC-17 remote rights that write need local write", "[access]") {
  VERBENA_BED_OR_SKIP(on);
  alignas(4096) static std::byte memory[4096];
  for (const int access : {int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_REMOTE_ATOMIC},
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}) {
    INFO("access " << access);
    errno = 0;
    ibv_mr* const made = on.calls.reg_mr(on.domain, memory, sizeof memory, access);
    CHECK(made == nullptr);
    CHECK(errno == EINVAL);
    if (made != nullptr) on.calls.dereg_mr(made);
  }
}

TEST_CASE("FC-26 atomics on an address that is not aligned", "[rc][access][atomic]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": no atomics, see the tests of their transfer");
  region theirs{on, 64};
  region mine{on, 64};
  for (const one_sided& what : {operations[2], operations[3]}) {
    linked pair{on};
    send_work work{1, what.opcode, {mine.piece(0, 8)}};
    // rxe's provider refuses it in the post, a responder as an invalid request.
    const auto said = pair.here.try_post(work.atomic(theirs.address(4), theirs.rkey(), 1, 1));
    if (said.accepted()) {
      CHECK(is(pair.here.sends().take_one(), 1, {IBV_WC_REM_INV_REQ_ERR}));
      CHECK(pair.here.reaches(IBV_QPS_ERR));
    } else {
      CHECK(said.error == EINVAL);
      CHECK(said.refused == &work);
    }
    CHECK(theirs.zero(0, 64));
  }
}

TEST_CASE("access: reads need a peer that answers them", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": depths are RDMA CM's there");
  region theirs{on, 64};
  region mine{on, 64};
  end_options none;
  none.reads = 0;
  linked pair{on, {}, none};
  // max_dest_rd_atomic 0. rxe answers at least one whatever it is told.
  pair.here.post(send_work{1, IBV_WR_RDMA_READ, {mine.piece()}}.at(theirs));
  const ibv_wc done = pair.here.sends().take_one();
  if (on.is_rxe())
    CHECK(is(done, 1, {IBV_WC_SUCCESS, IBV_WC_REM_INV_REQ_ERR}));
  else
    CHECK(is(done, 1, {IBV_WC_REM_INV_REQ_ERR}));
}

TEST_CASE("access: addresses are the program's own, 64 bits wide", "[access]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096};
  CHECK(memory.address() > 0xffff'ffffU);  // mappings of a 64-bit process
  CHECK(memory.lkey() != 0);
}

TEST_CASE("access: regions within one another have keys of their own", "[rc][access]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 8192, usable(on, all_rights)};
  ibv_mr* const inner = on.calls.reg_mr(on.domain, memory.data() + 100, 200,
                                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  REQUIRE(inner != nullptr);
  CHECK(inner->rkey != memory.rkey());
  CHECK(inner->lkey != memory.lkey());
  {
    region out{on, 256, usable(on, all_rights)};
    out.fill(1);
    linked pair{on};
    pair.here.post(
        send_work{1, IBV_WR_RDMA_WRITE, {out.piece(0, 200)}}.at(memory.address(100), inner->rkey));
    CHECK(is(pair.here.sends().take_one(), 1));
    CHECK(memory.same(100, out, 0, 200));
    memory.clear();
    pair.here.post(
        send_work{1, IBV_WR_RDMA_WRITE, {out.piece(0, 200)}}.at(memory.address(101), inner->rkey));
    failed(on, pair, memory, operations[0], {IBV_WC_REM_ACCESS_ERR});
  }
  CHECK(on.calls.dereg_mr(inner) == 0);
}
