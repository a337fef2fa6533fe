// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include "side.hpp"

using namespace soft_test;

// Messages of up to 16 bytes travel in their completions: the receiver's poll puts them into its
// memory, where peers can not reach that.

namespace {

/// The memory of a side once more, for receives alone.
struct inbox {
  explicit inbox(side& its)
      : of{its},
        region{its.calls.reg_mr(its.domain, its.memory, side::bytes, IBV_ACCESS_LOCAL_WRITE)} {
    REQUIRE(region != nullptr);
  }
  ~inbox() { of.calls.dereg_mr(region); }
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;
  ibv_sge piece(std::size_t at, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(of.memory + at), length, region->lkey};
  }

  side& of;
  ibv_mr* region;
};

}  // namespace

TEST_CASE("soft: small messages of every length arrive whole, and no byte beside them", "[soft]") {
  linked both;
  const inbox in{both.there};
  for (std::uint32_t length = 1; length <= 20; ++length) {
    std::fill_n(both.there.memory, 64, std::byte{0xee});
    for (std::uint32_t i = 0; i < length; ++i) both.here.memory[i] = std::byte(i + length);
    REQUIRE(both.other.receive(length, {in.piece(8, 40)}) == 0);
    REQUIRE(both.one.send(length, {both.here.piece(0, length)}) == 0);
    CHECK(status_of(both.one.sends, length) == IBV_WC_SUCCESS);
    CHECK(status_of(both.other.receives, length) == IBV_WC_SUCCESS);
    CHECK(std::equal(both.here.memory, both.here.memory + length, both.there.memory + 8));
    CHECK(both.there.memory[7] == std::byte{0xee});
    CHECK(both.there.memory[8 + length] == std::byte{0xee});
  }
}

TEST_CASE("soft: a small message in several pieces, into several", "[soft]") {
  linked both;
  const inbox in{both.there};
  for (std::uint32_t i = 0; i < 12; ++i) both.here.memory[i] = std::byte(i + 1);
  REQUIRE(both.other.receive(1, {in.piece(0, 5), in.piece(64, 7)}) == 0);
  REQUIRE(both.one.send(1, {both.here.piece(0, 9), both.here.piece(9, 3)}) == 0);
  CHECK(status_of(both.other.receives, 1) == IBV_WC_SUCCESS);
  CHECK(std::equal(both.here.memory, both.here.memory + 5, both.there.memory));
  CHECK(std::equal(both.here.memory + 5, both.here.memory + 12, both.there.memory + 64));
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  REQUIRE(both.other.receive(2, {in.piece(128, 16)}) == 0);
  REQUIRE(both.one.send(2, {both.here.piece(0, 9), both.here.piece(9, 3)}) == 0);
  CHECK(status_of(both.other.receives, 2) == IBV_WC_SUCCESS);
  CHECK(std::equal(both.here.memory, both.here.memory + 12, both.there.memory + 128));
}

TEST_CASE("soft: memory that is deregistered has what had come, and is not touched after",
          "[soft]") {
  linked both;
  std::byte* const memory = both.there.memory + 2048;
  ibv_mr* const region =
      both.there.calls.reg_mr(both.there.domain, memory, 64, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region != nullptr);
  const ibv_sge into{reinterpret_cast<std::uintptr_t>(memory), 64, region->lkey};
  both.here.word(0) = 77;
  REQUIRE(both.other.receive(1, {into}) == 0);
  REQUIRE(both.one.send(1, {both.here.piece(0, 8)}) == 0);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  REQUIRE(both.there.calls.dereg_mr(region) == 0);
  CHECK(both.there.word(2048) == 77);
  both.there.word(2048) = 9;
  CHECK(status_of(both.other.receives, 1) == IBV_WC_SUCCESS);
  CHECK(both.there.word(2048) == 9);
}

TEST_CASE("soft: a queue pair that is reset has what had come, and its memory is not touched after",
          "[soft]") {
  linked both;
  const inbox in{both.there};
  both.here.word(0) = 77;
  REQUIRE(both.other.receive(1, {in.piece(2048, 8)}) == 0);
  REQUIRE(both.one.send(1, {both.here.piece(0, 8)}) == 0);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  REQUIRE(both.other.modify(IBV_QPS_RESET, 0) == 0);
  CHECK(both.there.word(2048) == 77);
  both.there.word(2048) = 9;
  CHECK(status_of(both.other.receives, 1) == IBV_WC_SUCCESS);
  CHECK(both.there.word(2048) == 9);
}

TEST_CASE("soft: what had come for a region is polled while that is deregistered", "[soft]") {
  linked both;
  end_options datagrams;
  datagrams.type = IBV_QPT_UD;
  end busy{both.there, datagrams};
  std::byte* const memory = both.there.memory + 2048;
  ibv_mr* const region =
      both.there.calls.reg_mr(both.there.domain, memory, 64, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region != nullptr);
  const ibv_sge into{reinterpret_cast<std::uintptr_t>(memory), 64, region->lkey};
  both.here.word(0) = 77;
  REQUIRE(both.other.receive(1, {into}) == 0);
  REQUIRE(both.one.send(1, {both.here.piece(0, 8)}) == 0);
  // Somebody is at work on this process's memory, and deregistering waits for him in vain.
  auto& visiting = verbena::soft::queue_pair::of(busy.pair).entry->visiting;
  visiting = 1;
  REQUIRE(both.there.calls.dereg_mr(region) == EBUSY);
  visiting = 0;
  CHECK(status_of(both.other.receives, 1) == IBV_WC_SUCCESS);
  CHECK(both.there.word(2048) == 77);
  REQUIRE(both.there.calls.dereg_mr(region) == 0);
}
