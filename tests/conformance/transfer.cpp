// SPDX-License-Identifier: BSL-1.0
#include <arpa/inet.h>

#include <cstring>
#include <vector>

#include "fixture/linked.hpp"

using namespace raw;

namespace {

/// A right that a device may not have in its registrations costs nothing where it is unused.
int rights(const bed& on) {
  return on.iwarp ? all_rights & ~int{IBV_ACCESS_REMOTE_ATOMIC} : all_rights;
}

/// Whether the device takes a kind of request; iWARP refuses some in the post. Notes the reason.
bool takes(const bed& on, linked& pair, send_work& probe, const char* name) {
  if (!on.iwarp) return true;
  const auto said = pair.here.try_post(probe);
  CHECK_FALSE(said.accepted());
  CHECK(said.refused == &probe);
  skipped_for = on.name + ": " + reason(name, said.error);
  return false;
}

}  // namespace

TEST_CASE("transfer: send and receive", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 256, rights(on)};
  region in{on, 256, rights(on)};
  linked pair{on};
  out.fill(1);
  pair.there.post(receive_work{1, {in.piece()}});
  pair.here.post(send_work{2, IBV_WR_SEND, {out.piece(0, 100)}});
  const ibv_wc sent = pair.here.sends().take_one();
  CHECK(is(sent, 2));
  CHECK(sent.opcode == IBV_WC_SEND);
  CHECK(sent.qp_num == pair.here.number());
  const ibv_wc received = pair.there.receives().take_one();
  CHECK(is(received, 1));
  CHECK(received.opcode == IBV_WC_RECV);
  CHECK(received.byte_len == 100);
  CHECK(received.qp_num == pair.there.number());
  CHECK((received.wc_flags & IBV_WC_WITH_IMM) == 0);
  CHECK(in.same(0, out, 0, 100));
  CHECK(in.zero(100, 156));
}

TEST_CASE("transfer: both directions at once in order", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 4096, rights(on)};
  region in{on, 4096, rights(on)};
  linked pair{on};
  out.fill(3);
  for (std::uint64_t i = 0; i < 8; ++i) {
    pair.here.post(receive_work{i, {in.piece(i * 64, 64)}});
    pair.there.post(receive_work{i, {in.piece(2048 + i * 64, 64)}});
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    pair.here.post(send_work{10 + i, IBV_WR_SEND, {out.piece(i * 64, i + 1)}});
    if (i == 0) CHECK(is(pair.there.receives().take_one(), 0));  // iWARP: the active side is first
    pair.there.post(send_work{20 + i, IBV_WR_SEND, {out.piece(1024 + i * 64, 64 - i)}});
  }
  const auto check = [&](end& at, std::uint64_t first, bool passive) {
    const auto sent = at.sends().take(8);
    for (std::uint64_t i = 0; i < 8; ++i) CHECK(is(sent[i], first + i));
    const auto received = at.receives().take(passive ? 7 : 8);
    for (std::uint64_t i = 0; i < received.size(); ++i) {
      const std::uint64_t n = i + (passive ? 1 : 0);
      CHECK(is(received[i], n));
      CHECK(received[i].byte_len == (passive ? n + 1 : 64 - n));
    }
  };
  check(pair.here, 10, false);
  check(pair.there, 20, true);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(in.same(2048 + i * 64, out, i * 64, i + 1));
    CHECK(in.same(i * 64, out, 1024 + i * 64, 64 - i));
  }
}

TEST_CASE("FC-30 immediate data comes in network order and only with its flag", "[rc][imm]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 64, rights(on)};
  region in{on, 64, rights(on)};
  linked pair{on};
  out.fill(4);
  const std::uint32_t immediate = htonl(0x89abcdef);
  {
    send_work probe{1, IBV_WR_SEND_WITH_IMM, {out.piece()}};
    if (!takes(on, pair, probe, "SEND_WITH_IMM")) return;
  }
  for (const unsigned flags : {0U, unsigned{IBV_SEND_INLINE}}) {
    INFO("flags " << flags);
    in.clear();
    for (std::uint64_t id = 1; id <= 3; ++id) pair.there.post(receive_work{id, {in.piece()}});
    pair.here.post(send_work{11, IBV_WR_SEND_WITH_IMM, {out.piece(0, 8)}, IBV_SEND_SIGNALED | flags}
                       .with_immediate(immediate));
    ibv_wc got = pair.there.receives().take_one();
    CHECK(is(got, 1));
    CHECK(got.opcode == IBV_WC_RECV);
    CHECK((got.wc_flags & IBV_WC_WITH_IMM) != 0);
    CHECK(got.imm_data == immediate);
    CHECK(got.byte_len == 8);
    CHECK(in.same(0, out, 0, 8));

    // The write's data goes where it says, not into the receive.
    pair.here.post(
        send_work{12, IBV_WR_RDMA_WRITE_WITH_IMM, {out.piece(8, 8)}, IBV_SEND_SIGNALED | flags}
            .at(in, 32)
            .with_immediate(immediate));
    got = pair.there.receives().take_one();
    CHECK(is(got, 2));
    CHECK(got.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK((got.wc_flags & IBV_WC_WITH_IMM) != 0);
    CHECK(got.imm_data == immediate);
    CHECK(got.byte_len == 8);
    CHECK(in.same(32, out, 8, 8));
    CHECK(in.same(0, out, 0, 8));

    pair.here.post(send_work{13, IBV_WR_SEND, {out.piece(0, 8)}, IBV_SEND_SIGNALED | flags});
    got = pair.there.receives().take_one();
    CHECK(is(got, 3));
    CHECK((got.wc_flags & IBV_WC_WITH_IMM) == 0);
    const auto sent = pair.here.sends().take(3);
    CHECK(is(sent[0], 11));
    CHECK(is(sent[1], 12));
    CHECK(sent[1].opcode == IBV_WC_RDMA_WRITE);
    CHECK(is(sent[2], 13));
  }
}

TEST_CASE("transfer: write with immediate takes a receive without pieces", "[rc][imm]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 64, rights(on)};
  region in{on, 64, rights(on)};
  linked pair{on};
  out.fill(5);
  {
    send_work probe{1, IBV_WR_RDMA_WRITE_WITH_IMM, {out.piece()}};
    if (!takes(on, pair, probe.at(in), "RDMA_WRITE_WITH_IMM")) return;
  }
  pair.there.post(receive_work{1, {}});
  pair.there.post(receive_work{2, {}});
  pair.here.post(send_work{3, IBV_WR_RDMA_WRITE_WITH_IMM, {out.piece()}}.at(in).with_immediate(7));
  pair.here.post(send_work{4, IBV_WR_RDMA_WRITE_WITH_IMM, {}}.at(0, 0).with_immediate(8));
  const auto got = pair.there.receives().take(2);
  CHECK(is(got[0], 1));
  CHECK(got[0].byte_len == 64);
  CHECK(got[0].imm_data == 7);
  CHECK(is(got[1], 2));
  CHECK(got[1].byte_len == 0);
  CHECK(got[1].imm_data == 8);
  CHECK(in.same(0, out, 0, 64));
  pair.here.sends().take(2);
}

TEST_CASE("transfer: write is silent at the peer", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 8192, rights(on)};
  region in{on, 8192, rights(on)};
  linked pair{on};
  out.fill(6);
  pair.there.post(receive_work{1, {in.piece(0, 16)}});
  pair.here.post(send_work{2, IBV_WR_RDMA_WRITE, {out.piece(0, 5000)}}.at(in, 1001));
  const ibv_wc done = pair.here.sends().take_one();
  CHECK(is(done, 2));
  CHECK(done.opcode == IBV_WC_RDMA_WRITE);
  CHECK(pair.there.receives().stays_empty());
  CHECK(in.zero(0, 1001));
  CHECK(in.same(1001, out, 0, 5000));
  CHECK(in.zero(6001, 8192 - 6001));
}

TEST_CASE("transfer: read", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  region theirs{on, 8192, rights(on)};
  region mine{on, 8192, rights(on)};
  linked pair{on};
  theirs.fill(7);
  pair.here.post(send_work{1, IBV_WR_RDMA_READ, {mine.piece(3, 5000)}}.at(theirs, 17));
  const ibv_wc done = pair.here.sends().take_one();
  CHECK(is(done, 1));
  CHECK(done.opcode == IBV_WC_RDMA_READ);
  CHECK(done.byte_len == 5000);
  CHECK(mine.zero(0, 3));
  CHECK(mine.same(3, theirs, 17, 5000));
  CHECK(mine.zero(5003, 8192 - 5003));
}

TEST_CASE("transfer: more reads than may be in flight wait their turn", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  region theirs{on, 4096, rights(on)};
  region mine{on, 4096, rights(on)};
  end_options one;
  one.reads = 1;
  linked pair{on, one};
  theirs.fill(8);
  for (std::uint64_t i = 0; i < 12; ++i)
    pair.here.post(send_work{i, IBV_WR_RDMA_READ, {mine.piece(i * 64, 64)}}.at(theirs, i * 64));
  const auto done = pair.here.sends().take(12);
  for (std::uint64_t i = 0; i < 12; ++i) CHECK(is(done[i], i));
  CHECK(mine.same(0, theirs, 0, 12 * 64));
}

TEST_CASE("FC-25 atomics return the old value and do not exchange their operands", "[rc][atomic]") {
  VERBENA_BED_OR_SKIP(on);
  region theirs{on, 64, rights(on)};
  region mine{on, 64, rights(on)};
  linked pair{on};
  constexpr std::uint64_t start = 0x0102030405060708;
  theirs.word(8) = start;
  const auto at = theirs.address(8);
  {
    send_work probe{1, IBV_WR_ATOMIC_FETCH_AND_ADD, {mine.piece(0, 8)}};
    if (!takes(on, pair, probe.atomic(at, theirs.rkey(), 1), "atomics")) return;
  }
  pair.here.post(send_work{1, IBV_WR_ATOMIC_FETCH_AND_ADD, {mine.piece(0, 8)}}.atomic(
      at, theirs.rkey(), 0xffff'ffff'ffff'ffff));
  ibv_wc done = pair.here.sends().take_one();
  CHECK(is(done, 1));
  CHECK(done.opcode == IBV_WC_FETCH_ADD);
  CHECK(done.byte_len == 8);
  CHECK(mine.word() == start);
  CHECK(theirs.word(8) == start - 1);

  pair.here.post(send_work{2, IBV_WR_ATOMIC_CMP_AND_SWP, {mine.piece(16, 8)}}.atomic(
      at, theirs.rkey(), start - 1, 42));
  done = pair.here.sends().take_one();
  CHECK(is(done, 2));
  CHECK(done.opcode == IBV_WC_COMP_SWAP);
  CHECK(mine.word(16) == start - 1);
  CHECK(theirs.word(8) == 42);

  // One that finds another value changes nothing and tells which.
  pair.here.post(send_work{3, IBV_WR_ATOMIC_CMP_AND_SWP, {mine.piece(24, 8)}}.atomic(
      at, theirs.rkey(), 41, 43));
  CHECK(is(pair.here.sends().take_one(), 3));
  CHECK(mine.word(24) == 42);
  CHECK(theirs.word(8) == 42);
  CHECK(theirs.word(0) == 0);
  CHECK(theirs.word(16) == 0);
}

TEST_CASE("transfer: atomics add up", "[rc][atomic]") {
  VERBENA_BED_OR_SKIP(on);
  region theirs{on, 64, rights(on)};
  region mine{on, 256, rights(on)};
  linked pair{on};
  {
    send_work probe{1, IBV_WR_ATOMIC_FETCH_AND_ADD, {mine.piece(0, 8)}};
    if (!takes(on, pair, probe.atomic(theirs.address(), theirs.rkey(), 1), "atomics")) return;
  }
  for (std::uint64_t i = 0; i < 16; ++i) {
    pair.here.post(send_work{i, IBV_WR_ATOMIC_FETCH_AND_ADD, {mine.piece(8 * i, 8)}}.atomic(
        theirs.address(), theirs.rkey(), i + 1));
  }
  for (const ibv_wc& each : pair.here.sends().take(16)) CHECK(each.status == IBV_WC_SUCCESS);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 16; sum += ++i) CHECK(mine.word(8 * i) == sum);
  CHECK(theirs.word() == sum);
}

TEST_CASE("transfer: inline needs no key and the source is free at once", "[rc][inline]") {
  VERBENA_BED_OR_SKIP(on);
  region in{on, 4096, rights(on)};
  linked pair{on};
  REQUIRE(pair.here.granted().max_inline_data >= 64);
  char source[64];
  const auto piece = [&](std::size_t at, std::uint32_t length) {
    return ibv_sge{reinterpret_cast<std::uintptr_t>(source + at), length, 0xdead};
  };
  for (std::uint64_t i = 0; i < 8; ++i) pair.there.post(receive_work{i, {in.piece(64 * i, 64)}});
  for (std::uint64_t i = 0; i < 8; ++i) {
    std::memset(source, 'a' + int(i), sizeof source);
    pair.here.post(send_work{i,
                             IBV_WR_SEND,
                             {piece(0, 10), piece(13, 30), piece(0, 1)},
                             IBV_SEND_SIGNALED | IBV_SEND_INLINE});
    pair.here.post(
        send_work{100 + i, IBV_WR_RDMA_WRITE, {piece(0, 64)}, IBV_SEND_SIGNALED | IBV_SEND_INLINE}
            .at(in, 2048 + 64 * i));
    std::memset(source, '!', sizeof source);
  }
  for (const ibv_wc& each : pair.here.sends().take(16)) CHECK(is(each, each.wr_id));
  for (const ibv_wc& each : pair.there.receives().take(8)) {
    CHECK(is(each, each.wr_id));
    CHECK(each.byte_len == 41);
  }
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string sent(64, char('a' + i));
    CHECK(std::memcmp(in.data() + 64 * i, sent.data(), 41) == 0);
    CHECK(in.zero(64 * i + 41, 23));
    CHECK(std::memcmp(in.data() + 2048 + 64 * i, sent.data(), 64) == 0);
  }
}

TEST_CASE("transfer: lists of unequal pieces on both ends", "[rc][sge]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 8192, rights(on)};
  region in{on, 8192, rights(on)};
  linked pair{on};
  out.fill(9);
  const std::vector<std::byte> expected = [&] {
    std::vector<std::byte> all;
    for (const auto& [at, length] : {std::pair{0, 7}, {100, 2000}, {3000, 0}, {4000, 93}})
      all.insert(all.end(), out.data() + at, out.data() + at + length);
    return all;
  }();
  // A piece of length 0 among others: some adapters take it for 2^31 bytes, rxe and the software
  // device do not; it stops siw's transmit thread for good, and with it the whole system.
  std::vector<ibv_sge> from{out.piece(0, 7), out.piece(100, 2000), out.piece(4000, 93)};
  if (!on.iwarp) from.insert(from.begin() + 2, out.piece(3000, 0));
  pair.there.post(receive_work{
      1, {in.piece(1, 1), in.piece(10, 1033), in.piece(2000, 66), in.piece(4096, 2000)}});
  pair.here.post(send_work{2, IBV_WR_SEND, from});
  CHECK(is(pair.here.sends().take_one(), 2));
  const ibv_wc got = pair.there.receives().take_one();
  CHECK(is(got, 1));
  CHECK(got.byte_len == 2100);
  CHECK(std::memcmp(in.data() + 1, expected.data(), 1) == 0);
  CHECK(std::memcmp(in.data() + 10, expected.data() + 1, 1033) == 0);
  CHECK(std::memcmp(in.data() + 2000, expected.data() + 1034, 66) == 0);
  CHECK(std::memcmp(in.data() + 4096, expected.data() + 1100, 1000) == 0);
  CHECK(in.zero(5096, 1000));

  in.clear();
  pair.here.post(send_work{3, IBV_WR_RDMA_WRITE, from}.at(in, 5));
  CHECK(is(pair.here.sends().take_one(), 3));
  CHECK(std::memcmp(in.data() + 5, expected.data(), 2100) == 0);

  if (on.iwarp) return;  // one piece: see the test below
  in.clear();
  pair.here.post(
      send_work{4, IBV_WR_RDMA_READ, {in.piece(1, 3), in.piece(50, 1500), in.piece(9, 5)}}.at(out,
                                                                                              11));
  CHECK(is(pair.here.sends().take_one(), 4));
  CHECK(in.same(1, out, 11, 3));
  CHECK(in.same(50, out, 14, 1500));
  CHECK(in.same(9, out, 1514, 5));
}

TEST_CASE("FC-18 an iWARP read fills one piece, which the peer may write", "[rc][sge]") {
  VERBENA_BED_OR_SKIP(on);
  if (!on.iwarp) VERBENA_SKIP(on.name + " is no iWARP device");
  region theirs{on, 64, rights(on)};
  region mine{on, 64, rights(on)};
  region local{on, 64, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  theirs.fill(1);
  // Adapters refuse the second piece; siw leaves it out, and only the length tells.
  send_work two{1, IBV_WR_RDMA_READ, {mine.piece(0, 8), mine.piece(16, 8)}};
  if (const auto said = pair.here.try_post(two.at(theirs)); said.accepted()) {
    const ibv_wc done = pair.here.sends().take_one();
    INFO(text(done));
    CHECK((done.status != IBV_WC_SUCCESS || done.byte_len == 8));
    CHECK(mine.zero(16, 8));
  } else {
    CHECK(said.refused == &two);
  }
  // Adapters place nothing without the right to remote writes; siw asks for the local one alone.
  if (pair.here.state() == IBV_QPS_ERR) return;
  pair.here.post(send_work{2, IBV_WR_RDMA_READ, {local.piece()}}.at(theirs));
  const ibv_wc done = pair.here.sends().take_one();
  CHECK(done.wr_id == 2);
  CHECK(local.same(0, theirs, 0, 64) == (done.status == IBV_WC_SUCCESS));
}

TEST_CASE("transfer: no bytes at all", "[rc][zero]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 64, rights(on)};
  region in{on, 64, rights(on)};
  linked pair{on};
  out.fill(2);
  in.fill(3);
  const region before{on, 64, rights(on)};
  std::memcpy(before.data(), in.data(), 64);
  // siw refuses receives without pieces.
  if (!on.iwarp) {
    pair.there.post(receive_work{1, {}});
    pair.here.post(send_work{2, IBV_WR_SEND, {}});
    const ibv_wc got = pair.there.receives().take_one();
    CHECK(is(got, 1));
    CHECK(got.byte_len == 0);
    CHECK(is(pair.here.sends().take_one(), 2));
  }
  pair.there.post(receive_work{3, {in.piece()}});
  pair.here.post(send_work{4, IBV_WR_SEND, {out.piece(0, 0)}});
  const ibv_wc got = pair.there.receives().take_one();
  CHECK(is(got, 3));
  CHECK(got.byte_len == 0);
  CHECK(is(pair.here.sends().take_one(), 4));
  // Keys and addresses of one-sided operations that move nothing are not looked at.
  const std::uint32_t key = on.iwarp ? in.rkey() : 0x12345;
  const std::uint64_t address = on.iwarp ? in.address() : 0x10;
  pair.here.post(send_work{5, IBV_WR_RDMA_WRITE, {}}.at(address, key));
  CHECK(is(pair.here.sends().take_one(), 5));
  if (!on.iwarp) {
    pair.here.post(send_work{6, IBV_WR_RDMA_READ, {}}.at(address, key));
    CHECK(is(pair.here.sends().take_one(), 6));
  }
  CHECK(in.same(0, before, 0, 64));
  CHECK(pair.here.state() == pair.there.state());
}

TEST_CASE("transfer: a message of many packets", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  constexpr std::size_t length = 300'001;
  region out{on, length, rights(on)};
  region in{on, length, rights(on)};
  linked pair{on};
  out.fill(11);
  pair.there.post(receive_work{1, {in.piece()}});
  pair.here.post(send_work{2, IBV_WR_SEND, {out.piece()}});
  CHECK(is(pair.here.sends().take_one(), 2));
  const ibv_wc got = pair.there.receives().take_one();
  CHECK(is(got, 1));
  CHECK(got.byte_len == length);
  CHECK(in.same(0, out, 0, length));
  in.clear();
  pair.here.post(send_work{3, IBV_WR_RDMA_WRITE, {out.piece()}}.at(in));
  CHECK(is(pair.here.sends().take_one(), 3));
  CHECK(in.same(0, out, 0, length));
  in.clear();
  pair.here.post(send_work{4, IBV_WR_RDMA_READ, {in.piece()}}.at(out));
  CHECK(is(pair.here.sends().take_one(), 4));
  CHECK(in.same(0, out, 0, length));
}

TEST_CASE("transfer: a queue pair connected to itself", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": iWARP queue pairs are connected by RDMA CM, to another");
  region out{on, 64, rights(on)};
  region in{on, 64, rights(on)};
  end alone{on};
  alone.to_init();
  alone.to_rtr(alone.number());
  alone.to_rts();
  out.fill(12);
  alone.post(receive_work{1, {in.piece()}});
  alone.post(send_work{2, IBV_WR_SEND, {out.piece()}});
  CHECK(is(alone.receives().take_one(), 1));
  CHECK(is(alone.sends().take_one(), 2));
  CHECK(in.same(0, out, 0, 64));
}

TEST_CASE("FC-27 a fenced request waits for the reads before it", "[rc][fence]") {
  VERBENA_BED_OR_SKIP(on);
  region theirs{on, 65536, rights(on)};
  region mine{on, 65536, rights(on)};
  region fresh{on, 64, rights(on)};
  linked pair{on};
  fresh.fill(99);
  for (int round = 0; round < 8; ++round) {
    theirs.fill(unsigned(round));
    pair.here.post(send_work{1, IBV_WR_RDMA_READ, {mine.piece()}}.at(theirs));
    // Sends what the read brings, and overwrites what it reads.
    pair.there.post(receive_work{4, {theirs.piece(0, 64)}});
    pair.here.post(send_work{
        2, IBV_WR_SEND, {mine.piece(65536 - 64, 64)}, IBV_SEND_SIGNALED | IBV_SEND_FENCE});
    pair.here.post(
        send_work{3, IBV_WR_RDMA_WRITE, {fresh.piece()}, IBV_SEND_SIGNALED | IBV_SEND_FENCE}.at(
            theirs, 65536 - 64));
    const auto done = pair.here.sends().take(3);
    for (std::uint64_t i = 0; i < 3; ++i) CHECK(is(done[i], i + 1));
    CHECK(is(pair.there.receives().take_one(), 4));
    CHECK(theirs.same(0, mine, 65536 - 64, 64));
    CHECK(mine.data()[65535] ==
          std::byte(static_cast<unsigned char>(65535U * 7 + unsigned(round))));
    CHECK(theirs.same(65536 - 64, fresh, 0, 64));
  }
}

TEST_CASE("a write after a message to the same memory has the last word", "[rc]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 128};
  linked pair{on};
  memory.fill(1);
  pair.there.post(receive_work{1, {memory.piece(64, 8)}});
  pair.here.post(send_work{1, IBV_WR_SEND, {memory.piece(0, 8)}});
  pair.here.post(send_work{2, IBV_WR_RDMA_WRITE, {memory.piece(8, 8)}}.at(memory, 64));
  CHECK(is(pair.here.sends().take_one(), 1));
  CHECK(is(pair.here.sends().take_one(), 2));
  CHECK(is(pair.there.receives().take_one(), 1));
  CHECK(memory.same(64, memory, 8, 8));
}
