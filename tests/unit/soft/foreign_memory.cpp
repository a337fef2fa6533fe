// SPDX-License-Identifier: BSL-1.0
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "child.hpp"
#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

std::uint32_t number_of(soft::cause why) { return static_cast<std::uint32_t>(why); }

/// As a container does that knows nothing of ptrace.
bool forbid_memory_of_others() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{sizeof program / sizeof program[0], program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Memory that is not from the device's allocator, registered for everything.
struct own_memory {
  explicit own_memory(side& of)
      : on{of}, region{on.calls.reg_mr(on.domain, words.get(), 4096, on.rights())} {
    REQUIRE(region != nullptr);
  }
  ~own_memory() { on.calls.dereg_mr(region); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(words.get()); }

  side& on;
  std::unique_ptr<std::uint64_t[]> words{new std::uint64_t[512]{}};
  ibv_mr* region;
};

/// Connects an end of this process with one that the other process tells of, and the other way.
void meet(const child& with, end& mine) {
  with.say(mine.pair->qp_num);
  mine.connect(static_cast<std::uint32_t>(with.hear()));
  with.say(0);
  with.hear();
}

}  // namespace

TEST_CASE("soft: atomics on another process's memory that is not shared", "[soft]") {
  const std::string fabric = fabric_name();
  child owner{[&](child& parent) {
    side there{fabric};
    end other{there};
    own_memory memory{there};
    memory.words[0] = 5;
    meet(parent, other);
    parent.say(memory.address());
    parent.say(memory.region->rkey);
    parent.hear();
    parent.say(memory.words[0]);
    ibv_async_event told{};
    parent.say(
        there.calls.get_async_event(there.native, &told) == 0 ? std::uint64_t{told.event_type} : 0);
    ibv_qp_attr is{};
    ibv_qp_init_attr was{};
    there.calls.query_qp(other.pair, &is, IBV_QP_STATE, &was);
    parent.say(is.qp_state);
    parent.hear();
  }};
  side here{fabric};
  end one{here};
  meet(owner, one);
  const std::uint64_t address = owner.hear();
  const auto key = static_cast<std::uint32_t>(owner.hear());
  REQUIRE(one.fetch_add(1, here.piece(0, 8), address, key, 3) == 0);
  const auto got = next(one.sends);
  REQUIRE(got.has_value());
  CHECK(got->status == IBV_WC_REM_OP_ERR);
  CHECK(got->vendor_err == number_of(soft::cause::atomic_not_shared));
  CHECK(std::string{soft::explain_vendor_error(got->vendor_err)}.find("device::allocate") !=
        std::string::npos);
  owner.say(0);
  CHECK(owner.hear() == 5);
  CHECK(owner.hear() == IBV_EVENT_QP_REQ_ERR);
  CHECK(owner.hear() == IBV_QPS_ERR);
  owner.end();  // before this process leaves the fabric: the last removes it
}

TEST_CASE("soft: atomics on memory of one's own process need no sharing", "[soft]") {
  linked both;
  own_memory memory{both.there};
  // Two devices of one process are two processes to the fabric; one with itself is one.
  end one{both.there};
  one.connect(one.pair->qp_num);
  memory.words[0] = 5;
  REQUIRE(one.fetch_add(1, both.there.piece(0, 8), memory.address(), memory.region->rkey, 3) == 0);
  CHECK(status_of(one.sends, 1) == IBV_WC_SUCCESS);
  CHECK(memory.words[0] == 8);
  CHECK(both.there.word(0) == 5);
}

TEST_CASE("soft: atomics of two processes and the processor on shared memory", "[soft]") {
  constexpr std::uint64_t rounds = 1000;
  const std::string fabric = fabric_name();
  child owner{[&](child& parent) {
    side there{fabric};
    end other{there};
    end own{there};
    own.connect(own.pair->qp_num);
    meet(parent, other);
    parent.say(reinterpret_cast<std::uintptr_t>(there.memory));
    parent.say(there.region->rkey);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      std::atomic_ref{there.word(0)}.fetch_add(1);
      (void)own.fetch_add(i, there.piece(8, 8), reinterpret_cast<std::uintptr_t>(there.memory),
                          there.region->rkey, 1 << 10);
      (void)next(own.sends);
    }
    parent.hear();
    parent.say(there.word(0));
    parent.hear();
  }};
  side here{fabric};
  end one{here};
  meet(owner, one);
  const std::uint64_t address = owner.hear();
  const auto key = static_cast<std::uint32_t>(owner.hear());
  for (std::uint64_t i = 0; i < rounds; ++i) {
    REQUIRE(one.fetch_add(i, here.piece(0, 8), address, key, 1 << 20) == 0);
    REQUIRE(status_of(one.sends, i) == IBV_WC_SUCCESS);
  }
  owner.say(0);
  CHECK(owner.hear() == rounds * ((1 << 20) + (1 << 10) + 1));
  owner.end();
}

TEST_CASE("soft: where the system forbids the memory of other processes", "[soft]") {
  const std::string fabric = fabric_name();
  child owner{[&](child& parent) {
    side there{fabric};
    own_memory memory{there};
    memory.words[0] = 5;
    for (int round = 0; round < 3; ++round) {
      end other{there};
      meet(parent, other);
      other.receive(9, {{memory.address(), 64, memory.region->lkey}});
      parent.say(memory.address());
      parent.say(memory.region->rkey);
      parent.hear();
      const auto got = next(other.receives, 100ms);
      parent.say(got ? std::uint64_t{got->status} : 0);
      parent.say(got ? std::uint64_t{got->vendor_err} : 0);
      parent.say(memory.words[0]);
    }
    parent.hear();
  }};
  child requester{[&](child& parent) {
    const bool forbidden = forbid_memory_of_others();
    parent.say(forbidden ? 1 : 0);
    side here{fabric};
    here.word(0) = 77;
    for (int round = 0; round < 3; ++round) {
      end one{here};
      parent.say(one.pair->qp_num);
      one.connect(static_cast<std::uint32_t>(parent.hear()));
      parent.say(0);
      const std::uint64_t address = parent.hear();
      const auto key = static_cast<std::uint32_t>(parent.hear());
      switch (round) {
        case 0: (void)one.rdma(IBV_WR_RDMA_WRITE, 1, here.piece(0, 8), address, key); break;
        case 1: (void)one.rdma(IBV_WR_RDMA_READ, 1, here.piece(0, 8), address, key); break;
        default: (void)one.send(1, {here.piece(0, 24)}); break;  // more than a completion carries
      }
      const auto got = next(one.sends);
      parent.say(got ? std::uint64_t{got->status} : 99);
      parent.say(got ? std::uint64_t{got->vendor_err} : 99);
      parent.hear();
    }
    parent.hear();
  }};
  if (requester.hear() == 0) {
    WARN("skipped: no seccomp");
    return;
  }
  for (int round = 0; round < 3; ++round) {
    INFO(round);
    const std::uint64_t its = owner.hear();
    owner.say(requester.hear());
    requester.say(its);
    owner.hear();
    requester.hear();
    owner.say(0);
    requester.say(owner.hear());
    requester.say(owner.hear());
    CHECK(requester.hear() == IBV_WC_REM_OP_ERR);
    CHECK(requester.hear() == number_of(soft::cause::memory_forbidden));
    owner.say(0);
    const bool is_send = round >= 2;
    CHECK(owner.hear() == (is_send ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR));
    CHECK(owner.hear() == (is_send ? number_of(soft::cause::memory_forbidden) : 0));
    CHECK(owner.hear() == 5);
    requester.say(0);
  }
  owner.end();
  requester.end();
  const side last{fabric};  // takes back what they left
}

TEST_CASE("soft: a receiver that has just died is gone, not wrong", "[soft]") {
  // That it lives is known for a millisecond; its memory is not there any more.
  for (int round = 0; round < 10; ++round) {
    const std::string fabric = fabric_name();
    child receiver{[&](child& parent) {
      side there{fabric};
      end other{there};
      own_memory memory{there};
      meet(parent, other);
      for (std::uint64_t id = 0; id < 8; ++id)
        other.receive(id, {{memory.address(), 64, memory.region->lkey}});
      parent.say(0);
      parent.hear();
    }};
    side here{fabric};
    end one{here};
    meet(receiver, one);
    receiver.hear();
    // Longer than what a completion carries, so that it is the memory that is not there.
    REQUIRE(one.send(1, {here.piece(0, 24)}) == 0);
    REQUIRE(status_of(one.sends, 1) == IBV_WC_SUCCESS);
    receiver.end();
    REQUIRE(one.send(2, {here.piece(0, 24)}) == 0);
    CHECK(status_of(one.sends, 2) == IBV_WC_RETRY_EXC_ERR);
  }
}
