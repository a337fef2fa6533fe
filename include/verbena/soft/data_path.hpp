// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

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

/// Takes one request into the queue; 0 or an errno.
inline int accept_request(context& here, queue_pair& pair, const ibv_send_wr& work) {
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
  if (pair.posted - pair.retired + kept >= pair.requests.size()) return ENOMEM;
  const bool inlined = (work.send_flags & IBV_SEND_INLINE) != 0;
  if (inlined && !may_inline(work.opcode)) return EINVAL;
  send_request& into = pair.requests[pair.posted % pair.requests.size()];
  into.wr_id = work.wr_id;
  into.opcode = work.opcode;
  into.flags = work.send_flags;
  into.immediate = work.imm_data;
  into.pieces.assign(work.sg_list, work.sg_list + work.num_sge);
  if (faulty && here.knobs.zero_length_2g != 0) {
    for (ibv_sge& each : into.pieces) each.length = each.length == 0 ? 1U << 31 : each.length;
  }
  into.inlined.clear();
  if (inlined) {
    into.pieces.assign(work.sg_list, work.sg_list + work.num_sge);
    std::uint64_t total = 0;
    for (const ibv_sge& each : into.pieces) total += each.length;
    if (total > pair.granted.max_inline_data) return ENOMEM;
    for (const ibv_sge& each : into.pieces) {
      const auto* const from = reinterpret_cast<const std::byte*>(each.addr);
      into.inlined.insert(into.inlined.end(), from, from + each.length);
    }
  }
  if (pair.type == IBV_QPT_UD) {
    if (work.wr.ud.ah == nullptr) return EINVAL;
    into.to = &address_handle::of(work.wr.ud.ah);
    into.remote_number = work.wr.ud.remote_qpn;
    into.remote_qkey = work.wr.ud.remote_qkey;
  } else if (atomic) {
    into.remote_address = work.wr.atomic.remote_addr;
    into.remote_key = work.wr.atomic.rkey;
    into.compare_add = work.wr.atomic.compare_add;
    into.swap = work.wr.atomic.swap;
  } else {
    into.remote_address = work.wr.rdma.remote_addr;
    into.remote_key = work.wr.rdma.rkey;
  }
  ++pair.posted;
  return 0;
}

inline int reported_errno(const context& here, int number) noexcept {
  return here.knobs.negative_errno != 0 ? -number : number;
}

inline int post_send(ibv_qp* native, ibv_send_wr* work, ibv_send_wr** refused) {
  queue_pair& pair = queue_pair::of(native);
  context& here = context::of(native->context);
  const std::scoped_lock held{pair.mutex};
  int number = 0;
  const std::uint32_t state = pair.entry->state.load(std::memory_order_acquire);
  const bool may_post =
      state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
  for (; work != nullptr; work = work->next) {
    number = may_post ? accept_request(here, pair, *work) : EINVAL;
    if (number != 0) break;
  }
  requester{here, pair}.run();
  if (number != 0) {
    *refused = work;
    return reported_errno(here, number);
  }
  return 0;
}

inline int post_receives(context& here, receive_queue& queue, ibv_recv_wr* work,
                         ibv_recv_wr** refused) {
  const std::scoped_lock held{queue.mutex};
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

inline int post_recv(ibv_qp* native, ibv_recv_wr* work, ibv_recv_wr** refused) {
  queue_pair& pair = queue_pair::of(native);
  context& here = context::of(native->context);
  const std::scoped_lock held{pair.mutex};
  const std::uint32_t state = pair.entry->state.load(std::memory_order_acquire);
  if (state == IBV_QPS_RESET || pair.shared_receives != nullptr) {
    *refused = work;
    return reported_errno(here, EINVAL);
  }
  const int number = post_receives(here, pair.receives, work, refused);
  if (pair.entry->state.load(std::memory_order_acquire) == IBV_QPS_ERR) {
    pair.receives_flushed = false;
    requester{here, pair}.run();
  }
  return number;
}

inline int post_srq_recv(ibv_srq* native, ibv_recv_wr* work, ibv_recv_wr** refused) {
  return post_receives(context::of(native->context), shared_receive_queue::of(native).queue, work,
                       refused);
}

/// Does what has become due on the queue pairs that complete into `queue`; under its mutex.
inline void progress(context& here, completion_queue& queue) {
  for (queue_pair* each : queue.attached) {
    const std::scoped_lock held{each->mutex};
    requester{here, *each}.run();
  }
}

inline int poll_cq(ibv_cq* native, int most, ibv_wc* into) {
  completion_queue& queue = completion_queue::of(native);
  context& here = context::of(native->context);
  const std::scoped_lock held{queue.mutex};
  if (queue.entry->failed.load(std::memory_order_relaxed) != 0) return -EIO;
  const auto take_some = [&] {
    int count = 0;
    std::uint64_t position = 0;
    const std::uint64_t end = end_of_given(here, queue);
    while (count < most && queue.head < end && take(here, queue, into[count], position)) {
      if ((position & 1) != 0) {
        queue_pair* const pair =
            here.queue_pairs[into[count].qp_num % queue_pair_limit].load(std::memory_order_acquire);
        const std::uint64_t next = (position >> 1) + 1;
        if (pair != nullptr && pair->native.qp_base.qp_num == into[count].qp_num &&
            next - pair->retired.load(std::memory_order_relaxed) <= pair->requests.size()) {
          pair->retired.store(next, std::memory_order_release);
        }
      }
      if (into[count].status != IBV_WC_SUCCESS && here.knobs.poison_errors != 0) {
        into[count].opcode = static_cast<ibv_wc_opcode>(0x5a);
        into[count].byte_len = 0xa5a5'a5a5;
        into[count].imm_data = 0x5a5a'5a5a;
        into[count].wc_flags = ~0U;
        into[count].src_qp = 0xffff'ffff;
      }
      ++count;
    }
    return count;
  };
  int count = take_some();
  if (count != 0) return count;
  // A peer fails a queue pair without a word to its owner, and processes die: looked for now and
  // then, timers whenever there are any.
  constexpr std::uint32_t look_every = 32;
  if (queue.blocked.load(std::memory_order_relaxed) != 0 || ++queue.empty_polls % look_every == 0) {
    progress(here, queue);
    count = take_some();
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
