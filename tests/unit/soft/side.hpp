// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <verbena/soft/soft_device.hpp>
#include <verbena/verbs/device_list.hpp>

#include "../../catch.hpp"

/// The software device as hand-written verbs use it.
namespace soft_test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using verbena::soft::context;

/// A fabric of this process's own. Processes that a test forks are given its name.
inline std::string fabric_name() {
  static int count = 0;
  return "soft:t-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

struct end_options {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap{.max_send_wr = 8,
                 .max_recv_wr = 8,
                 .max_send_sge = 2,
                 .max_recv_sge = 2,
                 .max_inline_data = 64};
  std::uint8_t reads_asked = 4;
  std::uint8_t reads_answered = 4;
  std::uint8_t timeout = 8;  ///< a millisecond
  std::uint8_t retries = 1;
  std::uint8_t not_ready_retries = 7;
  ibv_srq* shared_receives = nullptr;
  ibv_comp_channel* channel = nullptr;
  bool only_receives_wake = false;  ///< the channel is of the receives' completions alone
  ibv_cq* completions = nullptr;    ///< of both kinds, which outlives the end; else it has its own
};

/// An open device with 4 KiB of memory of its allocator, which anybody may use.
struct side {
  static constexpr std::size_t bytes = 4096;

  explicit side(const std::string& name)
      : device{verbena::verbs::open(name).value()},
        calls{device.table()},
        native{device.native_handle()},
        domain{calls.alloc_pd(native)} {
    REQUIRE(domain != nullptr);
    memory = static_cast<std::byte*>(calls.allocate(native, bytes));
    REQUIRE(memory != nullptr);
    region = calls.reg_mr(domain, memory, bytes, rights());
    REQUIRE(region != nullptr);
  }
  ~side() {
    calls.dereg_mr(region);
    calls.release(native, memory, bytes);
    calls.dealloc_pd(domain);
  }
  side(const side&) = delete;
  side& operator=(const side&) = delete;

  int rights() const {
    const int atomics = device.is_iwarp() ? 0 : int{IBV_ACCESS_REMOTE_ATOMIC};
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | atomics;
  }
  verbena::soft::knobs& knobs() const { return context::of(native).knobs; }
  ibv_sge piece(std::size_t at, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(memory + at), length, region->lkey};
  }
  std::uint64_t& word(std::size_t at) const {
    return *reinterpret_cast<std::uint64_t*>(memory + at);
  }

  verbena::verbs::device device;
  const verbena::verbs::control_table& calls;
  ibv_context* native;
  ibv_pd* domain;
  std::byte* memory;
  ibv_mr* region;
};

/// A queue pair with a queue for its sends' completions and one for its receives'.
struct end {
  explicit end(side& of, const end_options& with = {}) : on{of}, chosen{with} {
    ibv_comp_channel* const of_sends = with.only_receives_wake ? nullptr : with.channel;
    sends = receives = with.completions;
    if (with.completions == nullptr) {
      sends = on.calls.create_cq(on.native, 64, nullptr, of_sends, 0);
      receives = on.calls.create_cq(on.native, 64, nullptr, with.channel, 0);
    }
    REQUIRE(sends != nullptr);
    REQUIRE(receives != nullptr);
    ibv_qp_init_attr asked{};
    asked.send_cq = sends;
    asked.recv_cq = receives;
    asked.srq = with.shared_receives;
    asked.cap = with.cap;
    asked.qp_type = with.type;
    pair = on.calls.create_qp(on.domain, &asked);
    REQUIRE(pair != nullptr);
    granted = asked.cap;
  }
  ~end() {
    on.calls.destroy_qp(pair);
    if (chosen.completions != nullptr) return;
    on.calls.destroy_cq(sends);
    on.calls.destroy_cq(receives);
  }
  end(const end&) = delete;
  end& operator=(const end&) = delete;

  ibv_ah_attr address(std::uint8_t gid = 3) const {
    ibv_ah_attr to{};
    to.is_global = 1;
    to.port_num = 1;
    to.grh.sgid_index = gid;
    to.grh.dgid.raw[10] = to.grh.dgid.raw[11] = 0xff;
    to.grh.dgid.raw[12] = 127;
    to.grh.dgid.raw[15] = 1;
    return to;
  }
  int modify(ibv_qp_state to, int mask, ibv_qp_attr with = {}) {
    with.qp_state = to;
    return on.calls.modify_qp(pair, &with, mask | IBV_QP_STATE);
  }
  int to_rtr(std::uint32_t peer, ibv_mtu mtu = IBV_MTU_1024, std::uint8_t gid = 3) {
    ibv_qp_attr with{};
    with.path_mtu = mtu;
    with.dest_qp_num = peer;
    with.ah_attr = address(gid);
    with.max_dest_rd_atomic = chosen.reads_answered;
    with.min_rnr_timer = 1;
    const int reliable =
        chosen.type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | int{IBV_QP_MIN_RNR_TIMER} : 0;
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    return modify(IBV_QPS_RTR, chosen.type == IBV_QPT_UD ? 0 : connected | reliable, with);
  }
  int to_init() {
    ibv_qp_attr with{};
    with.port_num = 1;
    with.qkey = qkey;
    with.qp_access_flags = static_cast<unsigned>(on.rights());
    const int rest = chosen.type == IBV_QPT_UD ? IBV_QP_QKEY : int{IBV_QP_ACCESS_FLAGS};
    return modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | rest, with);
  }
  int to_rts() {
    ibv_qp_attr with{};
    with.max_rd_atomic = chosen.reads_asked;
    with.timeout = chosen.timeout;
    with.retry_cnt = chosen.retries;
    with.rnr_retry = chosen.not_ready_retries;
    const int reliable =
        IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
    return modify(IBV_QPS_RTS, IBV_QP_SQ_PSN | (chosen.type == IBV_QPT_RC ? reliable : 0), with);
  }
  /// From RESET to RTS; 0 is a peer for datagrams only.
  void connect(std::uint32_t peer) {
    REQUIRE(to_init() == 0);
    REQUIRE(to_rtr(peer) == 0);
    REQUIRE(to_rts() == 0);
  }

  int post(ibv_send_wr work, std::vector<ibv_sge> pieces) {
    work.sg_list = pieces.data();
    work.num_sge = static_cast<int>(pieces.size());
    ibv_send_wr* refused = nullptr;
    return ibv_post_send(pair, &work, &refused);
  }
  int send(std::uint64_t id, std::vector<ibv_sge> pieces, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr work{};
    work.wr_id = id;
    work.opcode = IBV_WR_SEND;
    work.send_flags = flags;
    return post(work, std::move(pieces));
  }
  int send_to(std::uint64_t id, ibv_ah* to, std::uint32_t number, std::vector<ibv_sge> pieces) {
    ibv_send_wr work{};
    work.wr_id = id;
    work.opcode = IBV_WR_SEND;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.ud = {to, number, qkey};
    return post(work, std::move(pieces));
  }
  int rdma(ibv_wr_opcode opcode, std::uint64_t id, ibv_sge local, std::uint64_t to,
           std::uint32_t key) {
    ibv_send_wr work{};
    work.wr_id = id;
    work.opcode = opcode;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma = {to, key};
    return post(work, {local});
  }
  int fetch_add(std::uint64_t id, ibv_sge local, std::uint64_t to, std::uint32_t key,
                std::uint64_t add) {
    ibv_send_wr work{};
    work.wr_id = id;
    work.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.atomic = {to, add, 0, key};
    return post(work, {local});
  }
  int receive(std::uint64_t id, std::vector<ibv_sge> pieces) {
    ibv_recv_wr work{};
    work.wr_id = id;
    work.sg_list = pieces.data();
    work.num_sge = static_cast<int>(pieces.size());
    ibv_recv_wr* refused = nullptr;
    return ibv_post_recv(pair, &work, &refused);
  }

  static constexpr std::uint32_t qkey = 0x1111;
  side& on;
  end_options chosen;
  ibv_cq* sends = nullptr;
  ibv_cq* receives = nullptr;
  ibv_qp* pair = nullptr;
  ibv_qp_cap granted{};
};

/// The next completion; none when none comes in time.
inline std::optional<ibv_wc> next(ibv_cq* from, std::chrono::nanoseconds within = 10s) {
  const auto until = clock::now() + within;
  ibv_wc got{};
  do {
    const int count = ibv_poll_cq(from, 1, &got);
    REQUIRE(count >= 0);
    if (count == 1) return got;
    std::this_thread::yield();
  } while (clock::now() < until);
  return std::nullopt;
}
inline bool stays_empty(ibv_cq* queue, std::chrono::nanoseconds for_so_long = 20ms) {
  return !next(queue, for_so_long).has_value();
}
/// The status of the next completion, which has this id.
inline int status_of(ibv_cq* from, std::uint64_t id) {
  const auto got = next(from);
  REQUIRE(got.has_value());
  CHECK(got->wr_id == id);
  return got->status;
}

/// Two queue pairs connected to each other, each of a device of its own on one fabric. `first`
/// and `second` are lists of knobs.
struct linked {
  explicit linked(const end_options& with = {}, const std::string& first = {},
                  const std::string& second = {})
      : linked{fabric_name(), with, first, second} {}
  linked(const std::string& fabric, const end_options& with, const std::string& first,
         const std::string& second)
      : here{fabric + first}, there{fabric + second}, one{here, with}, other{there, with} {
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
  }
  std::uint64_t remote(std::size_t at = 0) const {
    return reinterpret_cast<std::uintptr_t>(there.memory + at);
  }
  std::uint32_t key() const { return there.region->rkey; }
  int write(std::uint64_t id) {
    return one.rdma(IBV_WR_RDMA_WRITE, id, here.piece(0, 8), remote(), key());
  }

  side here;
  side there;
  end one;
  end other;
};

}  // namespace soft_test
