// SPDX-License-Identifier: BSL-1.0
// The shared segment of a fabric and the rings of its queues, changed under two running peers:
// errors, but never a crash, a byte written outside registered memory, or a call that waits.
//
// An input is a list of steps of four bytes: an operation of either peer, or a change of shared
// bytes, by this thread or by another while the next operation runs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <verbena/soft.hpp>

namespace soft = verbena::soft;

namespace {

constexpr std::size_t page = 4096;
constexpr std::byte canary{0xc5};
constexpr int everything = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

void require(bool holds) {
  if (!holds) std::abort();
}

const std::string& fabric_name() {
  static const std::string name = "fuzz-" + std::to_string(::getpid());
  return name;
}

/// No call may take long, whatever stands in the segment. In time of the processor's, because a
/// busy machine is no fault; who waits here does so by looking.
class stopwatch {
 public:
  ~stopwatch() { require(now() - begun_ < 4); }

 private:
  static std::int64_t now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec;
  }
  std::int64_t begun_ = now();
};

/// Three pages, of which the middle one is registered.
struct memory {
  std::byte* bytes = nullptr;
  ibv_mr* region = nullptr;

  void fill() const { std::memset(bytes, static_cast<int>(canary), 3 * page); }
  bool untouched_around() const {
    const auto is_canary = [](std::byte each) { return each == canary; };
    return std::all_of(bytes, bytes + page, is_canary) &&
           std::all_of(bytes + 2 * page, bytes + 3 * page, is_canary);
  }
  bool untouched() const {
    return untouched_around() && std::all_of(bytes + page, bytes + 2 * page,
                                             [](std::byte each) { return each == canary; });
  }
  ibv_sge piece(std::size_t at, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(bytes) + page + at, length, region->lkey};
  }
};

/// One peer: a device of its own, with a queue pair connected to the other's.
class peer {
 public:
  peer()
      : device_{soft::open("soft:" + fabric_name()).value()},
        context_{device_.native_handle()},
        calls_{device_.table()} {
    domain_ = calls_.alloc_pd(context_);
    channel_ = calls_.create_comp_channel(context_);
    ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    ::fcntl(context_->async_fd, F_SETFL, ::fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK);
    queue_ = calls_.create_cq(context_, 32, nullptr, channel_, 0);
    ibv_srq_init_attr shared{};
    shared.attr = {16, 2, 0};
    shared_ = calls_.create_srq(domain_, &shared);
    ibv_qp_init_attr asked{};
    asked.qp_type = IBV_QPT_RC;
    asked.send_cq = asked.recv_cq = queue_;
    asked.cap = {16, 16, 2, 2, 64};
    pair_ = calls_.create_qp(domain_, &asked);
    asked.srq = shared_;
    other_pair_ = calls_.create_qp(domain_, &asked);
    for (memory* each : {&shared_memory, &bystander, &readable})
      each->bytes = static_cast<std::byte*>(calls_.allocate(context_, 3 * page));
    own.bytes = static_cast<std::byte*>(std::aligned_alloc(page, 3 * page));
    for (memory* each : {&shared_memory, &bystander, &readable, &own}) each->fill();
    for (memory* each : {&shared_memory, &own})
      each->region = calls_.reg_mr(domain_, each->bytes + page, page, everything);
    readable.region = calls_.reg_mr(domain_, readable.bytes + page, page, IBV_ACCESS_REMOTE_READ);
    require(queue_ != nullptr && pair_ != nullptr && other_pair_ != nullptr &&
            readable.region != nullptr);
  }
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;

  ~peer() {
    const stopwatch watch;
    // Without this what seems to be touched now could not be taken down: EBUSY.
    for (auto& each : context().fabric->shared().queue_pairs) each.visiting = 0;
    for (ibv_qp* each : {pair_, other_pair_}) require(calls_.destroy_qp(each) == 0);
    require(calls_.destroy_srq(shared_) == 0);
    require(calls_.destroy_cq(queue_) == 0);
    require(calls_.destroy_comp_channel(channel_) == 0);
    for (const memory* each : {&shared_memory, &own, &readable}) stuck_.push_back(each->region);
    for (ibv_mr* each : stuck_) require(calls_.dereg_mr(each) == 0);
    for (const memory* each : {&shared_memory, &bystander, &readable})
      calls_.release(context_, each->bytes, 3 * page);
    require(calls_.dealloc_pd(domain_) == 0);
    std::free(own.bytes);
  }

  void connect(const peer& to) {
    join(pair_, to.pair_->qp_num);
    join(other_pair_, to.other_pair_->qp_num);
    for (int i = 0; i < 4; ++i) {
      receive(0);
      receive(1);
    }
  }

  /// One operation; `what` and `how` choose.
  void act(const peer& to, std::uint8_t what, std::uint8_t how) {
    const stopwatch watch;
    const memory& target = (how & 1) != 0 ? to.shared_memory : to.own;
    const memory& source = (how & 2) != 0 ? shared_memory : own;
    ibv_qp* const through = (how & 4) != 0 ? pair_ : other_pair_;
    const auto length = std::uint32_t{how} * 3;
    switch (what % 14) {
      case 0: return send(through, IBV_WR_SEND, source.piece(0, length), {}, 0);
      case 1: return send(through, IBV_WR_SEND_WITH_IMM, source.piece(0, length), {}, 0);
      case 2: return send(through, IBV_WR_RDMA_WRITE, source.piece(0, length), target, 8);
      case 3: return send(through, IBV_WR_RDMA_WRITE_WITH_IMM, source.piece(0, length), target, 0);
      case 4: return send(through, IBV_WR_RDMA_READ, source.piece(0, length), target, 16);
      case 5: return send(through, IBV_WR_RDMA_READ, source.piece(0, length), to.readable, 16);
      case 6: return send(through, IBV_WR_RDMA_WRITE, source.piece(0, length), to.readable, 0);
      case 7:
        return send(through, IBV_WR_ATOMIC_FETCH_AND_ADD, source.piece(0, 8), to.shared_memory, 8);
      case 8: return receive(how % 2);
      case 9: {
        ibv_req_notify_cq(queue_, how % 2);
        ibv_cq* from = nullptr;
        void* with = nullptr;
        if (calls_.get_cq_event(channel_, &from, &with) == 0) calls_.ack_cq_events(from, 1);
        return;
      }
      case 10: {
        ibv_async_event event{};
        if (calls_.get_async_event(context_, &event) == 0) calls_.ack_async_event(&event);
        return;
      }
      case 11: {
        ibv_mr* const made = calls_.reg_mr(domain_, own.bytes + page, page, everything);
        if (made != nullptr && calls_.dereg_mr(made) != 0) stuck_.push_back(made);
        return;
      }
      case 12: {
        ibv_qp_attr with{};
        with.qp_state = IBV_QPS_RESET;
        calls_.modify_qp(through, &with, IBV_QP_STATE);
        join(through, through == pair_ ? to.pair_->qp_num : to.other_pair_->qp_num);
        return;
      }
      default: {
        std::array<ibv_wc, 16> found{};
        ibv_poll_cq(queue_, found.size(), found.data());
        return;
      }
    }
  }

  void check() const {
    require(shared_memory.untouched_around());
    require(own.untouched_around());
    require(bystander.untouched());
    require(readable.untouched());
  }

  const soft::context& context() const { return soft::context::of(context_); }
  std::vector<std::span<std::byte>> rings() const {
    const auto& queue = soft::completion_queue::of(queue_);
    const soft::receive_queue& receives = soft::queue_pair::of(pair_).receives;
    const soft::receive_queue& shared = soft::shared_receive_queue::of(shared_).queue;
    return {{reinterpret_cast<std::byte*>(queue.ring), (queue.mask + 1) * soft::completion_stride},
            {receives.slots, (receives.mask + 1) * receives.stride},
            {shared.slots, (shared.mask + 1) * shared.stride}};
  }

  memory shared_memory;
  memory bystander;  ///< shared, and registered nowhere
  memory readable;
  memory own;

 private:
  void join(ibv_qp* of, std::uint32_t to) {
    ibv_qp_attr with{};
    const auto go = [&](ibv_qp_state next, int mask) {
      with.qp_state = next;
      calls_.modify_qp(of, &with, mask | IBV_QP_STATE);
    };
    with.port_num = 1;
    with.qp_access_flags = everything & ~IBV_ACCESS_LOCAL_WRITE;
    go(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    with.path_mtu = IBV_MTU_1024;
    with.dest_qp_num = to;
    with.max_dest_rd_atomic = 4;
    with.min_rnr_timer = 1;
    with.ah_attr.is_global = 1;
    with.ah_attr.port_num = 1;
    with.ah_attr.grh.sgid_index = 3;
    go(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    with.max_rd_atomic = 4;
    with.retry_cnt = 1;
    with.rnr_retry = 1;
    with.timeout = 1;
    go(IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_TIMEOUT);
  }
  void send(ibv_qp* through, ibv_wr_opcode what, ibv_sge from, const memory& to, std::size_t at) {
    ibv_send_wr work{};
    work.opcode = what;
    work.sg_list = &from;
    work.num_sge = 1;
    work.send_flags = IBV_SEND_SIGNALED;
    if (to.region != nullptr) {
      const std::uint64_t address = reinterpret_cast<std::uintptr_t>(to.bytes) + page + at;
      if (what == IBV_WR_ATOMIC_FETCH_AND_ADD)
        work.wr.atomic = {address, 1, 0, to.region->rkey};
      else
        work.wr.rdma = {address, to.region->rkey};
    }
    ibv_send_wr* bad = nullptr;
    ibv_post_send(through, &work, &bad);
  }
  void receive(int shared) {
    std::array<ibv_sge, 2> into{own.piece(0, 500), shared_memory.piece(100, 500)};
    ibv_recv_wr work{};
    work.sg_list = into.data();
    work.num_sge = 2;
    ibv_recv_wr* bad = nullptr;
    shared != 0 ? ibv_post_srq_recv(shared_, &work, &bad) : ibv_post_recv(pair_, &work, &bad);
  }

  verbena::verbs::device device_;
  ibv_context* context_;
  const verbena::verbs::control_table& calls_;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_srq* shared_ = nullptr;
  ibv_qp* pair_ = nullptr;
  ibv_qp* other_pair_ = nullptr;
  std::vector<ibv_mr*> stuck_;
};

/// A word somewhere in what the peers share, and what becomes of it.
struct change {
  std::byte* at = nullptr;
  std::uint8_t how = 0;
  std::uint8_t with = 0;

  void apply() const {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    switch (how % 6) {
      case 0: word ^= std::uint32_t{1} << (with % 32); break;
      case 1: word = with; break;
      case 2: word = ~std::uint32_t{0}; break;
      case 3: word += static_cast<std::uint32_t>(with) - 128; break;
      case 4: word = std::uint32_t{with} << 24 | word >> 8; break;
      default: word = 0; break;
    }
    std::atomic_ref{*reinterpret_cast<std::uint32_t*>(at)}.store(word);
  }
};

/// What may be changed: the entries in use, and a few beyond; the rings.
std::vector<std::span<std::byte>> targets(const std::array<peer, 2>& peers) {
  std::vector<std::span<std::byte>> all;
  soft::segment& shared = peers[0].context().fabric->shared();
  const auto add = [&](auto& table, std::size_t most) {
    all.push_back({reinterpret_cast<std::byte*>(table.data()), most * sizeof table[0]});
  };
  add(shared.processes, 3);
  add(shared.arenas, 16);
  add(shared.regions, 8);
  add(shared.completion_queues, 3);
  add(shared.receive_queues, 5);
  add(shared.queue_pairs, 5);
  for (const peer& each : peers) {
    for (const auto ring : each.rings()) all.push_back(ring);
  }
  return all;
}

/// Applies a change a little later, from another thread.
class elsewhere {
 public:
  elsewhere() {
    worker_ = std::thread{[this] {
      for (; !ended_.load(); std::this_thread::yield()) {
        if (const change* next = next_.exchange(nullptr); next != nullptr) {
          next->apply();
          --under_way_;
        }
      }
    }};
  }
  ~elsewhere() {
    ended_ = true;
    worker_.join();
  }
  elsewhere(const elsewhere&) = delete;
  elsewhere& operator=(const elsewhere&) = delete;

  void apply(const change& what) {
    settle();
    held_ = what;
    ++under_way_;
    next_ = &held_;
  }
  void settle() const {
    while (under_way_.load() != 0) std::this_thread::yield();
  }

 private:
  change held_;
  std::atomic<const change*> next_{nullptr};
  std::atomic<int> under_way_{0};
  std::atomic<bool> ended_{false};
  std::thread worker_;
};

/// What corrupt tables have made the peers forget.
void sweep() {
  const std::string mine = "verbena-" + std::to_string(::getuid()) + "-" + fabric_name();
  for (const auto& each : std::filesystem::directory_iterator{"/dev/shm"}) {
    if (each.path().filename().string().starts_with(mine)) ::unlink(each.path().c_str());
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

/// What counts is what has gone before, so every other input is long and new.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  std::minstd_rand random{seed};
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  std::generate_n(data, most, [&] { return static_cast<std::uint8_t>(random() >> 8); });
  return most;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  {
    std::array<peer, 2> peers;
    peers[0].connect(peers[1]);
    peers[1].connect(peers[0]);
    const auto all = targets(peers);
    elsewhere other;
    for (; size >= 4; data += 4, size -= 4) {
      if (data[0] % 4 != 0) {  // an operation
        const std::size_t which = data[0] / 4 % 2;
        peers[which].act(peers[1 - which], data[1], data[2]);
        continue;
      }
      const std::span<std::byte> into = all[data[1] % all.size()];
      const std::size_t words = into.size() / 4;
      const std::size_t at = (std::size_t{data[2]} + 256U * (data[0] / 8 % 8)) % words;
      const change made{&into[4 * at], static_cast<std::uint8_t>(data[3] / 32), data[3]};
      (data[0] & 128) != 0 ? other.apply(made) : made.apply();
    }
    other.settle();
    for (const peer& each : peers) each.check();
  }
  sweep();
  return 0;
}
