// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "machine.hpp"

/// The calls that the verbs make through ibv_context::ops.
namespace fabricated::provider {

/// Takes one request, or tells why not.
inline int take_send(machine& owner, queue_pair& pair, const ibv_send_wr& request) {
  if (pair.qp_base.state != IBV_QPS_RTS && pair.qp_base.state != IBV_QPS_ERR) {
    owner.violated("a send is posted to a queue pair that is not connected");
    return EINVAL;
  }
  if (request.num_sge < 0 ||
      static_cast<std::uint32_t>(request.num_sge) > pair.granted.max_send_sge) {
    return EINVAL;
  }
  if (pair.sends.is_full()) return owner.out_of_room;
  const posted_send taken{request};
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (is_inline && taken.length() > pair.granted.max_inline_data) return EINVAL;
  for (const ibv_sge& each : taken.pieces) {
    if (!is_inline) {
      owner.check_local(pair.qp_base.pd, each,
                        request.opcode == IBV_WR_RDMA_READ ||
                            request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                            request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
    }
  }
  pair.sends.posted.push_back(taken);
  return 0;
}

inline int post_send(ibv_qp* native, ibv_send_wr* request, ibv_send_wr** bad) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  queue_pair& pair = machine::of(native);
  const std::optional<int> refused = owner.refuse.next(call::post_send);
  if (pair.building) owner.violated("ibv_post_send between ibv_wr_start and ibv_wr_complete");
  for (; request != nullptr; request = request->next) {
    const std::size_t before = pair.sends.posted.size();
    const int number = refused ? *refused : take_send(owner, pair, *request);
    if (pair.sends.posted.size() == before) {
      *bad = request;
      return number;
    }
  }
  if (native->state == IBV_QPS_ERR && owner.flushes_on_error) owner.flush(native);
  return 0;
}

inline int post_recv(ibv_qp* native, ibv_recv_wr* request, ibv_recv_wr** bad) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  queue_pair& pair = machine::of(native);
  const std::optional<int> refused = owner.refuse.next(call::post_recv);
  for (; request != nullptr; request = request->next) {
    const auto stop = [&](int with) {
      *bad = request;
      return with;
    };
    if (refused) return stop(*refused);
    if (pair.qp_base.state == IBV_QPS_RESET) {
      owner.violated("a receive is posted to a queue pair in RESET");
      return stop(EINVAL);
    }
    if (request->num_sge < 0 ||
        static_cast<std::uint32_t>(request->num_sge) > pair.granted.max_recv_sge) {
      return stop(EINVAL);
    }
    if (pair.receives.is_full()) return stop(owner.out_of_room);
    const posted_receive taken{*request};
    for (const ibv_sge& each : taken.pieces) owner.check_local(pair.qp_base.pd, each, true);
    pair.receives.posted.push_back(taken);
  }
  if (pair.qp_base.state == IBV_QPS_ERR && owner.flushes_on_error) owner.flush(native);
  return 0;
}

inline int poll_cq(ibv_cq* native, int most, ibv_wc* into) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::poll_cq)) return *refused;
  completion_queue& queue = machine::of(native);
  int count = 0;
  for (; count < most && !queue.entries.empty(); ++count) {
    const completion_queue::entry& first = queue.entries.front();
    into[count] = first.completion;
    if (first.of != nullptr) {
      (first.receive ? first.of->receives.polled : first.of->sends.polled) = first.done;
    }
    queue.entries.pop_front();
  }
  return count;
}

inline int req_notify_cq(ibv_cq* native, int solicited_only) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::req_notify_cq)) return *refused;
  completion_queue& queue = machine::of(native);
  if (native->channel == nullptr) {
    owner.violated("a completion queue without a channel is armed");
    return EINVAL;
  }
  // Arming for everything is not taken back by arming for less.
  if (queue.armed != arming::any) queue.armed = solicited_only ? arming::solicited : arming::any;
  ++queue.armed_count;
  return 0;
}

}  // namespace fabricated::provider
