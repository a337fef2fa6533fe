// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include <verbena/soft/kept_back.hpp>
#include <verbena/soft/requester.hpp>

/// The calls that programs reach through ibv_context::ops: post, poll, arm.
namespace verbena::soft {

/// Whether a kind of queue pair carries an operation; the table of ibv_post_send(3).
constexpr bool carries(ibv_qp_type type, ibv_wr_opcode opcode) noexcept {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM: return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM: return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return type == IBV_QPT_RC;
    default: return false;
  }
}

constexpr bool may_inline(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/// Whether the queue takes a request after so many others; 0 or an errno.
inline int check_request(const context& here, const queue_pair& pair, const ibv_send_wr& work,
                         std::uint64_t before = 0) noexcept {
  const bool iwarp = here.knobs.iwarp != 0;
  const bool immediate =
      work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool atomic =
      work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (!carries(pair.type, work.opcode) || (iwarp && (immediate || atomic))) return EINVAL;
  if (work.num_sge < 0 || static_cast<std::uint32_t>(work.num_sge) > pair.granted.max_send_sge)
    return EINVAL;
  if (iwarp && work.opcode == IBV_WR_RDMA_READ && work.num_sge > 1) return EINVAL;
  if ((work.send_flags & IBV_SEND_FENCE) != 0 && pair.type != IBV_QPT_RC) return EINVAL;
  const bool faulty = here.knobs.faults.load(std::memory_order_relaxed) != 0;
  const std::uint64_t kept = faulty ? here.knobs.refuse_early.load() : 0U;
  if (pair.posted + before - pair.retired.load(std::memory_order_acquire) + kept >=
      pair.requests.size())
    return ENOMEM;
  if ((work.send_flags & IBV_SEND_INLINE) != 0) {
    if (!may_inline(work.opcode)) return EINVAL;
    std::uint64_t total = 0;
    for (int i = 0; i < work.num_sge; ++i) total += work.sg_list[i].length;
    if (total > pair.granted.max_inline_data) return ENOMEM;
  }
  return pair.type == IBV_QPT_UD && work.wr.ud.ah == nullptr ? EINVAL : 0;
}

/// A request that has been checked, its memory where the program has it.
inline send_request request_of(const queue_pair& pair, const ibv_send_wr& work) noexcept {
  send_request made;
  made.wr_id = work.wr_id;
  made.opcode = work.opcode;
  made.flags = work.send_flags;
  made.immediate = work.imm_data;
  made.pieces = {work.sg_list, static_cast<std::size_t>(work.num_sge)};
  if (pair.type == IBV_QPT_UD) {
    made.to = &address_handle::of(work.wr.ud.ah);
    made.remote_number = work.wr.ud.remote_qpn;
    made.remote_qkey = work.wr.ud.remote_qkey;
  } else if (work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
             work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    made.remote_address = work.wr.atomic.remote_addr;
    made.remote_key = work.wr.atomic.rkey;
    made.compare_add = work.wr.atomic.compare_add;
    made.swap = work.wr.atomic.swap;
  } else {
    made.remote_address = work.wr.rdma.remote_addr;
    made.remote_key = work.wr.rdma.rkey;
  }
  return made;
}

inline int reported_errno(const context& here, int number) noexcept {
  return here.knobs.negative_errno != 0 ? -number : number;
}

/// Takes in a request that has been checked.
[[gnu::always_inline]] inline void take(requester& doing, const context& here,
                                        const queue_pair& pair, const ibv_send_wr& work) {
  const bool stretches =
      here.knobs.faults.load(std::memory_order_relaxed) != 0 && here.knobs.zero_length_2g != 0;
  if (stretches) [[unlikely]]
    return doing.take_stretched(request_of(pair, work));
  doing.take(request_of(pair, work));
}

inline int post_send(ibv_qp* native, ibv_send_wr* work, ibv_send_wr** refused) {
  queue_pair& pair = queue_pair::of(native);
  context& here = context::of(native->context);
  const std::scoped_lock held{pair};
  requester doing{here, pair};
  int number = 0;
  const std::uint32_t state = pair.entry->state.load(std::memory_order_acquire);
  const bool may_post =
      state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
  for (; work != nullptr; work = work->next) {
    number = may_post ? check_request(here, pair, *work) : EINVAL;
    if (number != 0) break;
    take(doing, here, pair, *work);
  }
  doing.run();
  if (number != 0) {
    *refused = work;
    return reported_errno(here, number);
  }
  return 0;
}

/// Under the lock that put_receive needs.
inline int post_receives(context& here, receive_queue& queue, ibv_recv_wr* work,
                         ibv_recv_wr** refused) {
  const bool faulty = here.knobs.faults.load(std::memory_order_relaxed) != 0;
  const std::uint32_t kept = faulty ? here.knobs.refuse_early.load() : 0U;
  const std::uint32_t zero_length = faulty && here.knobs.zero_length_2g != 0 ? 1U << 31 : 0;
  for (; work != nullptr; work = work->next) {
    if (const int number = put_receive(here, queue, *work, kept, zero_length); number != 0) {
      *refused = work;
      return reported_errno(here, number);
    }
  }
  return 0;
}

/// Carries out what the peer of a queue pair has waiting for a receive that is there now, if it is
/// of this device: so a receiver needs nobody else to go on. Under the lock of `of`.
inline void help_peer(context& here, queue_pair& of) {
  queue_pair* const peer = peer_here(here, of);
  if (peer == nullptr || peer == &of) return;
  // Either the peer sees the receive that has been posted, or it is seen to wait here.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!peer->waits.load(std::memory_order_relaxed) || !has_receive(of)) return;
  // Whoever is at work on it sees what there is, or will look again.
  if (!peer->try_lock()) return;
  if (peer->lacks_receive) peer->again_at = 0;  // its timer was for guessing when
  requester{here, *peer}.run();
  peer->unlock();
}

inline int post_recv(ibv_qp* native, ibv_recv_wr* work, ibv_recv_wr** refused) {
  queue_pair& pair = queue_pair::of(native);
  context& here = context::of(native->context);
  const std::scoped_lock held{pair};
  const std::uint32_t state = pair.entry->state.load(std::memory_order_acquire);
  if (state == IBV_QPS_RESET || pair.shared_receives != nullptr) {
    *refused = work;
    return reported_errno(here, EINVAL);
  }
  const int number = post_receives(here, pair.receives, work, refused);
  help_peer(here, pair);
  if (pair.entry->state.load(std::memory_order_acquire) == IBV_QPS_ERR) {
    pair.receives_flushed = false;
    requester{here, pair}.run();
  }
  return number;
}

/// As help_peer() for each queue pair that takes from a shared queue.
[[gnu::cold, gnu::noinline]] inline void help_peers(context& here, shared_receive_queue& of) {
  const std::scoped_lock held{here.mutex};  // so that none is destroyed meanwhile
  for (const auto& each : here.queue_pairs) {
    queue_pair* const pair = each.load(std::memory_order_acquire);
    if (pair == nullptr || pair->shared_receives != &of) continue;
    const std::scoped_lock working{*pair};
    help_peer(here, *pair);
  }
}

inline int post_srq_recv(ibv_srq* native, ibv_recv_wr* work, ibv_recv_wr** refused) {
  shared_receive_queue& of = shared_receive_queue::of(native);
  context& here = context::of(native->context);
  int number = 0;
  {
    const std::scoped_lock held{of.queue.mutex};
    number = post_receives(here, of.queue, work, refused);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as in help_peer()
  if (here.waiting.load(std::memory_order_relaxed) != 0) help_peers(here, of);
  return number;
}

/// Does what has become due on the queue pairs that complete into `queue`; under its lock.
[[gnu::noinline]] inline void progress(context& here, completion_queue& queue,
                                       bool polling = false) {
  // Looking at each costs as much as an empty poll: a queue of many is looked at more seldom.
  constexpr std::uint32_t least = 128;
  queue.look_after.store(std::max(least, static_cast<std::uint32_t>(queue.attached.size())),
                         std::memory_order_relaxed);
  queue.empty_polls.store(0, std::memory_order_relaxed);
  if (queue.entry->look.load(std::memory_order_relaxed) != 0) queue.entry->look.exchange(0);
  // Whoever looks at the claims takes their cache line from those who complete: seldom.
  constexpr std::uint32_t claims_every = 64;
  if (!polling || queue.looks++ % claims_every == 0) {
    const bool may_be_lost = pass_lost(here, queue);
    // What has come behind it does not wake again.
    constexpr std::int64_t glance = 1'000'000;
    if (may_be_lost && !polling && queue.native.channel != nullptr)
      set_timer(channel::of(queue.native.channel), now_ns() + glance);
  }
  fail_damaged(here, queue);
  for (queue_pair* each : queue.attached) {
    const std::scoped_lock held{*each};
    requester{here, *each}.run();
    help_peer(here, *each);
    // Who reached it may have died before he woke anybody.
    if (each->shared_receives != nullptr &&
        (each->shared_receives->queue.entry->limit.load() & limit_reached) != 0)
      wake(here, here.fabric->me(), async_number);
  }
}

/// Whether a poll that finds nothing should look at the queue pairs: where timers run, where a peer
/// has said so, and now and then, for peers that die before they say so.
inline bool should_look(completion_queue& queue) noexcept {
  const std::uint32_t before = queue.empty_polls.load(std::memory_order_relaxed);
  queue.empty_polls.store(before + 1, std::memory_order_relaxed);
  return before >= queue.look_after.load(std::memory_order_relaxed) ||
         queue.blocked.load(std::memory_order_relaxed) != 0 ||
         queue.entry->look.load(std::memory_order_relaxed) != 0;
}

/// What the knob wants in fields that are undefined on an error.
[[gnu::cold, gnu::noinline]] inline void poison(ibv_wc& of) noexcept {
  of.opcode = static_cast<ibv_wc_opcode>(0x5a);
  of.byte_len = 0xa5a5'a5a5;
  of.imm_data = 0x5a5a'5a5a;
  of.wc_flags = ~0U;
  of.src_qp = 0xffff'ffff;
}

/// Takes up to `most` completions; under the queue's lock.
inline int take_some(context& here, completion_queue& queue, int most, ibv_wc* into) noexcept {
  int count = 0;
  std::uint64_t position = 0;
  const std::uint64_t end = end_of_given(here, queue);
  while (count < most && queue.head.load(std::memory_order_relaxed) < end &&
         take(here, queue, into[count], position)) {
    ibv_wc& got = into[count++];
    if ((position & 1) != 0) {
      const std::uint32_t place = got.qp_num % queue_pair_limit;
      // First: who destroys it takes its number away, then waits for the lock of this queue.
      const queue_pair_entry& entry = here.fabric->shared().queue_pairs[place];
      const bool is_there = entry.number.load(std::memory_order_acquire) == got.qp_num;
      queue_pair* const pair =
          is_there ? here.queue_pairs[place].load(std::memory_order_acquire) : nullptr;
      const std::uint64_t next = (position >> 1) + 1;
      if (pair != nullptr &&
          next - pair->retired.load(std::memory_order_relaxed) <= pair->requests.size()) {
        pair->retired.store(next, std::memory_order_release);
      }
    }
    if (got.status != IBV_WC_SUCCESS) [[unlikely]] {
      if (here.knobs.poison_errors != 0) poison(got);
    }
  }
  return count;
}

inline int poll_cq(ibv_cq* native, int most, ibv_wc* into) {
  completion_queue& queue = completion_queue::of(native);
  context& here = context::of(native->context);
  if (queue.entry->failed.load(std::memory_order_relaxed) != 0) return -EIO;
  const std::uint64_t at = queue.head.load(std::memory_order_relaxed);
  if (!is_full(queue.ring[at & queue.mask], at)) {
    if (!should_look(queue)) return 0;
    const std::scoped_lock held{queue.mutex};
    progress(here, queue, true);
    return take_some(here, queue, most, into);
  }
  const std::scoped_lock held{queue.mutex};
  const int count = take_some(here, queue, most, into);
  // Where no poll finds the queue empty, what waits goes on all the same.
  constexpr int every = 8;  // 256 completions
  if ((at ^ (at + static_cast<std::uint64_t>(count))) >> every != 0) [[unlikely]] {
    if (queue.blocked.load(std::memory_order_relaxed) != 0 ||
        queue.entry->look.load(std::memory_order_relaxed) != 0)
      progress(here, queue, true);
  }
  return count;
}

inline int req_notify_cq(ibv_cq* native, int solicited_only) {
  completion_queue& queue = completion_queue::of(native);
  context& here = context::of(native->context);
  const std::scoped_lock held{queue.mutex};
  // Arming for any completion is not taken back by arming for solicited ones.
  std::uint32_t armed = queue.entry->armed.load();
  // Looked for before arming: what comes in between is given an event twice rather than never.
  if (armed != any && armed != solicited)
    queue.armed_at = std::min(first_missing(queue), end_of_given(here, queue));
  std::uint32_t next = armed;
  do {
    const bool to_any = solicited_only == 0 || armed == any || armed == fired_any;
    next = armed >= fired ? (to_any ? fired_any : fired_solicited) : (to_any ? any : solicited);
  } while (!queue.entry->armed.compare_exchange_weak(armed, next));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  progress(here, queue);
  wake_for_kept(here, queue);
  return 0;
}

}  // namespace verbena::soft
