// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <verbena/soft/fabric.hpp>
#include <verbena/soft/knobs.hpp>
#include <verbena/soft/region_view.hpp>
#include <verbena/soft/ring.hpp>

/// The objects of the software device as this process holds them. Each begins with the public
/// structure that programs see, so a pointer to one is a pointer to the other.
namespace verbena::soft {

struct queue_pair;
struct channel;
struct completion_queue;
struct shared_receive_queue;

struct context {
  ibv_context native{};
  ibv_device device{};
  std::shared_ptr<soft::fabric> fabric;
  soft::knobs knobs;
  std::mutex mutex;
  std::vector<channel*> channels;
  std::vector<completion_queue*> queues;
  std::vector<shared_receive_queue*> shared_receives;
  int async_wake = -1;  ///< a datagram socket like a channel's, under number 0
  std::atomic<std::uint32_t> domains{0};
  std::atomic<std::uint32_t> queues_made{0};
  std::atomic<std::uint32_t> waiting{0};  ///< queue pairs whose next request waits
  int wake_sender = -1;
  /// This process's regions again, where no other process can change them: what is touched by
  /// address here is checked against these.
  std::unique_ptr<region_entry[]> regions{new region_entry[region_limit]{}};
  std::array<std::atomic<queue_pair*>, queue_pair_limit>
      queue_pairs{};  ///< this process's, by place
  /// Where a queue pair of a place begins to count its send requests: after those of the last one
  /// there, whose completions may be polled later under the same number.
  std::array<std::uint64_t, queue_pair_limit> first_positions{};

  static context& of(const ibv_context* native) noexcept {
    return *reinterpret_cast<context*>(const_cast<ibv_context*>(native));
  }
};

struct domain {
  ibv_pd native{};
  std::atomic<std::uint32_t> users{0};
  std::uint32_t number = 0;  ///< tells it apart on the whole fabric

  static domain& of(const ibv_pd* native) noexcept {
    return *reinterpret_cast<domain*>(const_cast<ibv_pd*>(native));
  }
};

struct region {
  ibv_mr native{};
  region_entry* entry = nullptr;
};

struct completion_queue {
  ibv_cq native{};
  completion_queue_entry* entry = nullptr;
  std::uint32_t index = 0;
  arena_name arena;
  completion_slot* ring = nullptr;
  completion_claim* claims = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t> head{0};
  spin_lock mutex;                             ///< guards polling and the list
  std::atomic<std::uint32_t> empty_polls{0};   ///< since queue pairs here have been looked at
  std::atomic<std::uint32_t> look_after{128};  ///< so many
  std::uint32_t looks = 0;
  std::vector<queue_pair*> attached;
  std::uint32_t events = 0;  ///< got; acknowledged ones among them
  std::uint32_t async_events = 0;
  std::uint64_t armed_at = 0;  ///< what stands before it was there when the queue was armed
  std::atomic<std::uint32_t> blocked{0};  ///< queue pairs here that wait for a timer
  std::uint32_t ordinal = 0;              ///< the how manieth on the device, from 1
  std::uint64_t delayed_to = 0;           ///< what stands before it comes at delayed_until
  std::int64_t delayed_until = 0;

  static completion_queue& of(const ibv_cq* native) noexcept {
    return *reinterpret_cast<completion_queue*>(const_cast<ibv_cq*>(native));
  }
};

struct channel {
  ibv_comp_channel native{nullptr, -1, 0};
  int wake = -1;  ///< a datagram socket: who completes into an armed queue sends a byte
  int timer = -1;
  spin_lock timer_lock;
  std::int64_t timer_at = 0;  ///< when it goes off; 0 not set
  std::uint32_t name = 0;
  bool takes_datagrams = false;  ///< one of its queues does, or did
  std::vector<completion_queue*> queues;
  std::vector<std::pair<std::uint32_t, int>> watched;  ///< processes: owner number and descriptor
  std::mutex mutex;

  channel() = default;
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() {
    for (const auto& [owner, descriptor] : watched) ::close(descriptor);
    for (const int each : {native.fd, wake, timer}) {
      if (each >= 0) ::close(each);
    }
  }

  static channel& of(const ibv_comp_channel* native) noexcept {
    return *reinterpret_cast<channel*>(const_cast<ibv_comp_channel*>(native));
  }
};

/// A receive queue in an arena of this process; of one queue pair, or shared.
struct receive_queue {
  receive_queue_entry* entry = nullptr;
  std::uint32_t index = 0;
  arena_name arena;
  std::byte* slots = nullptr;
  std::uint64_t mask = 0;
  std::uint32_t depth = 0;
  std::uint32_t max_pieces = 0;
  std::uint32_t stride = 0;
  std::uint64_t posted = 0;
  spin_lock mutex;  ///< of a shared one; else the queue pair's

  receive_slot& slot(std::uint64_t position) const noexcept {
    return *reinterpret_cast<receive_slot*>(slots + (position & mask) * stride);
  }
};

struct shared_receive_queue {
  ibv_srq native{};
  receive_queue queue;
  std::atomic<std::uint32_t> users{0};
  std::uint32_t async_events = 0;  ///< got; acknowledged ones among them

  static shared_receive_queue& of(const ibv_srq* native) noexcept {
    return *reinterpret_cast<shared_receive_queue*>(const_cast<ibv_srq*>(native));
  }
};

struct address_handle {
  ibv_ah native{};
  ibv_ah_attr attributes{};

  static const address_handle& of(const ibv_ah* native) noexcept {
    return *reinterpret_cast<const address_handle*>(native);
  }
};

/// The state of a queue pair of any process; what is none counts as ERR.
inline ibv_qp_state state_of(const queue_pair_entry& of) noexcept {
  const std::uint32_t state = of.state.load(std::memory_order_acquire);
  return state > IBV_QPS_ERR ? IBV_QPS_ERR : static_cast<ibv_qp_state>(state);
}

/// One send request. Its pieces are the program's while it is being posted; one that has to wait
/// has them in its queue pair's stores.
struct send_request {
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode{};
  unsigned flags = 0;
  std::uint32_t immediate = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  const address_handle* to = nullptr;
  std::uint32_t remote_number = 0;
  std::uint32_t remote_qkey = 0;
  std::span<const ibv_sge> pieces;
};

/// A part of this process's memory, checked.
struct local_piece {
  std::byte* data;
  std::size_t length;
};

/// One receive, taken out of a queue: a copy of what its owner posted.
struct taken_receive {
  std::uint64_t wr_id = 0;
  receive_slot* slot = nullptr;
  std::uint64_t position = 0;
  std::uint64_t mine = 0;  ///< the turn that says it is taken
  std::uint64_t done = 0;  ///< the turn that gives the slot back
  std::uint32_t count = 0;
  std::array<shared_piece, (receive_stride_limit - sizeof(receive_slot)) / sizeof(shared_piece)>
      listed;

  /// False for a slot that holds nonsense.
  bool copy(const receive_slot& from, std::uint64_t stride) noexcept {
    const std::uint32_t found = from.pieces;
    if (found > listed.size() || sizeof(receive_slot) + found * sizeof(shared_piece) > stride)
      return false;
    const auto* const posted = reinterpret_cast<const shared_piece*>(&from + 1);
    for (std::uint32_t i = 0; i < found; ++i) listed[i] = posted[i];
    count = found;
    wr_id = from.wr_id;
    return true;
  }
  /// Says that it is of this slot, which process `me` has claimed.
  void is_of(receive_slot& taken, std::uint64_t at, std::uint32_t me, std::uint64_t mask) noexcept {
    slot = &taken;
    position = at;
    mine = make_turn(at, me, claimed);
    done = make_turn(at + mask + 1, 0, vacant);
  }

  std::span<const shared_piece> pieces() const noexcept { return std::span{listed}.first(count); }
  std::uint64_t room() const noexcept {
    std::uint64_t sum = 0;
    for (const shared_piece& each : pieces()) sum += each.length;
    return sum;
  }
  /// Lets another take the receive: nothing has come for it.
  void put_back() const noexcept {
    std::uint64_t expected = mine;
    slot->turn.compare_exchange_strong(expected, make_turn(position, 0, full),
                                       std::memory_order_acq_rel);
  }
  /// Gives the slot back to its owner, who may have taken it back on seeing the completion.
  void finish() const noexcept {
    std::uint64_t expected = mine;
    slot->turn.compare_exchange_strong(expected, done, std::memory_order_acq_rel);
  }
};

/// A request of the ibv_wr_* interface between wr_start and wr_complete.
struct built_request {
  ibv_send_wr work{};
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;
};

struct queue_pair {
  ibv_qp_ex native{};
  queue_pair_entry* entry = nullptr;
  std::uint32_t index = 0;
  ibv_qp_type type{};
  bool signal_all = false;
  ibv_qp_cap granted{};
  ibv_qp_attr attributes{};
  completion_queue* send_queue = nullptr;
  completion_queue* receive_completions = nullptr;
  receive_queue receives;
  shared_receive_queue* shared_receives = nullptr;
  std::vector<send_request> requests;   ///< a ring of granted.max_send_wr
  std::vector<ibv_sge> piece_store;     ///< for each of them max_send_sge
  std::vector<std::byte> inline_store;  ///< and max_inline_data
  std::vector<local_piece> local;       ///< of the request that is being carried out
  taken_receive receive;                ///< for it
  // What has been seen of the peer, which seldom changes.
  ring_view peer_receives;
  ring_view peer_completions;
  seen_region target;
  seen_region sink;
  std::uint64_t posted = 0;
  std::uint64_t started = 0;              ///< requests before this one have been carried out
  std::atomic<std::uint64_t> retired{0};  ///< requests before this one have freed their place
  std::int64_t again_at = 0;              ///< when blocked: nanoseconds of the monotonic clock
  std::uint32_t tries = 0;
  std::uint32_t not_ready_tries = 0;
  bool lacks_receive = false;  ///< what it waits for, if it does, is a receive of the peer's
  bool receives_flushed = false;
  std::uint32_t async_events = 0;              ///< got; acknowledged ones among them
  std::atomic<bool> last_receive_told{false};  ///< IBV_EVENT_QP_LAST_WQE_REACHED, since RESET
  std::atomic<bool> waits{false};              ///< counted in send_queue->blocked
  spin_lock building;                          ///< held from wr_start to wr_complete
  std::vector<built_request> built;            ///< kept, so that their memory is used again
  std::size_t built_count = 0;
  bool extended = false;  ///< made with send_ops_flags
  fabric::work_lock* work = nullptr;

  /// Makes this thread the only one of this process at work on the queue pair, and says on the
  /// fabric that it may touch the peer's memory: who takes that away waits for unlock().
  void lock() noexcept {
    entry->visiting.store(1, std::memory_order_relaxed);
    full_fence_by_lock();
    work->lock();
    // The thread that had the lock before may have taken the mark away.
    if (entry->visiting.load(std::memory_order_relaxed) == 0) [[unlikely]]
      visit();
  }
  bool try_lock() noexcept {
    if (!work->try_lock()) return false;
    visit();
    return true;
  }
  void visit() noexcept {
    entry->visiting.exchange(1, std::memory_order_seq_cst);
    full_fence_by_lock();
  }
  void unlock() noexcept {
    entry->visiting.store(0, std::memory_order_release);
    work->unlock();
  }

  static queue_pair& of(const ibv_qp* native) noexcept {
    return *reinterpret_cast<queue_pair*>(const_cast<ibv_qp*>(native));
  }

 private:
  /// The mark must be seen before anything of the peer is read. On x86 the exchange that takes the
  /// lock, or sets the mark, sees to that; elsewhere even a sequentially consistent one may be
  /// passed by loads that are not.
  static void full_fence_by_lock() noexcept {
#if !defined(__x86_64__)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
};

}  // namespace verbena::soft
