// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <verbena/soft/queue_pair_control.hpp>

/// Shared receive queues and address handles for the device seam.
namespace verbena::soft::control {

inline ibv_srq* create_srq(ibv_pd* in, ibv_srq_init_attr* asked) {
  context& here = context::of(in->context);
  if (asked->attr.max_wr == 0 || asked->attr.max_wr > here.knobs.max_qp_wr.load() ||
      asked->attr.max_sge > here.knobs.max_sge.load()) {
    return null(EINVAL);
  }
  auto made = std::make_unique<shared_receive_queue>();
  ibv_srq_attr granted = asked->attr;
  if (here.knobs.round_up_depths != 0) granted.max_wr = std::bit_ceil(granted.max_wr);
  granted.max_sge += here.knobs.extra_pieces;
  domain& of = domain::of(in);
  auto opened = open_receive_queue(here, made->queue, granted.max_wr, granted.max_sge, of.number);
  if (!opened) return refuse(std::move(opened).error());
  undo close_queue{[&] { close_receive_queue(here, made->queue); }};
  made->queue.entry->limit = asked->attr.srq_limit;
  made->native.context = in->context;
  made->native.srq_context = asked->srq_context;
  made->native.pd = in;
  made->native.handle = made->queue.index;
  pthread_mutex_init(&made->native.mutex, nullptr);
  pthread_cond_init(&made->native.cond, nullptr);
  const std::scoped_lock held{here.mutex};
  here.shared_receives.push_back(made.get());
  close_queue.keep();
  asked->attr = granted;
  ++of.users;
  return &made.release()->native;
}

/// Arms the limit; the size stays as it is, which is all IBV_SRQ_MAX_WR may ask here.
inline int modify_srq(ibv_srq* native, ibv_srq_attr* with, int mask) {
  receive_queue& of = shared_receive_queue::of(native).queue;
  if ((mask & ~IBV_SRQ_LIMIT) != 0) return EINVAL;
  if (with->srq_limit > of.depth) return EINVAL;
  std::uint32_t limit = of.entry->limit;
  while (!of.entry->limit.compare_exchange_weak(limit, (limit & limit_reached) | with->srq_limit)) {
  }
  return 0;
}

inline int query_srq(ibv_srq* native, ibv_srq_attr* into) {
  const receive_queue& of = shared_receive_queue::of(native).queue;
  *into = {of.depth, of.max_pieces, of.entry->limit.load() & ~limit_reached};
  return 0;
}

inline int destroy_srq(ibv_srq* native) {
  shared_receive_queue& of = shared_receive_queue::of(native);
  context& here = context::of(native->context);
  if (of.users != 0) return EBUSY;
  {
    const std::scoped_lock held{here.mutex};
    std::erase(here.shared_receives, &of);
  }
  if (!here.fabric->is_copy())
    wait_for_acknowledged(*native, native->events_completed, of.async_events);
  close_receive_queue(here, of.queue);
  --domain::of(native->pd).users;
  pthread_cond_destroy(&native->cond);
  pthread_mutex_destroy(&native->mutex);
  delete &of;
  return 0;
}

inline ibv_ah* create_ah(ibv_pd* in, ibv_ah_attr* with) {
  if (with->port_num != 1 || with->is_global == 0 ||
      !has_gid(context::of(in->context), with->grh.sgid_index))
    return null(EINVAL);
  auto* made = new (std::nothrow) address_handle;
  if (made == nullptr) return null(ENOMEM);
  made->native.context = in->context;
  made->native.pd = in;
  made->attributes = *with;
  ++domain::of(in).users;
  return &made->native;
}

inline int destroy_ah(ibv_ah* native) {
  --domain::of(native->pd).users;
  delete reinterpret_cast<address_handle*>(native);
  return 0;
}

}  // namespace verbena::soft::control
