// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <memory>

#include <verbena/soft/control.hpp>

/// Queue pairs for the device seam.
namespace verbena::soft::control {

/// Makes a receive queue of this process. Errors: errc::capacity naming the table or the memory.
inline result<void> open_receive_queue(context& here, receive_queue& into, std::uint32_t depth,
                                       std::uint32_t pieces, std::uint32_t domain) {
  receive_queue_entry* entry = here.fabric->claim(here.fabric->shared().receive_queues);
  if (entry == nullptr) return here.fabric->full("receive queues", receive_queue_limit);
  undo free_entry{[&] { entry->owner = 0; }};
  const std::uint32_t slots = std::bit_ceil(std::max(depth, 1U));
  into.stride = static_cast<std::uint32_t>(receive_stride(std::max(pieces, 1U)));
  auto memory = here.fabric->allocate(std::size_t{slots} * into.stride);
  if (!memory) return std::move(memory).error();
  free_entry.keep();
  into.entry = entry;
  into.index = static_cast<std::uint32_t>(entry - here.fabric->shared().receive_queues.data());
  into.arena = memory.value().name;
  into.slots = memory.value().base;
  into.mask = slots - 1;
  into.depth = depth;
  into.max_pieces = pieces;
  entry->domain = domain;
  entry->limit = 0;
  entry->posted = 0;
  entry->taken = 0;
  entry->searched = 0;
  for (std::uint32_t i = 0; i < slots; ++i) into.slot(i).turn = make_turn(i, 0, vacant);
  seal(entry->ring, here.fabric->me(), into.arena, into.mask, into.stride);
  return success();
}

inline void close_receive_queue(context& here, receive_queue& of) {
  if (of.entry == nullptr) return;
  const bool is_copy = here.fabric->is_copy();
  if (!is_copy) {
    of.entry->generation.fetch_add(1);
    of.entry->ring.seal = 0;
  }
  here.fabric->release(of.arena);
  if (!is_copy) of.entry->owner.store(0, std::memory_order_release);
  of.entry = nullptr;
}

/// What is granted to who asks for `asked`, which is within the limits.
inline ibv_qp_cap grant(const knobs& by, ibv_qp_cap asked) noexcept {
  if (by.round_up_depths != 0) {
    asked.max_send_wr = std::bit_ceil(asked.max_send_wr);
    asked.max_recv_wr = std::bit_ceil(asked.max_recv_wr);
  }
  asked.max_send_sge += by.extra_pieces;
  asked.max_recv_sge += by.extra_pieces;
  if (by.grant_no_inline != 0) asked.max_inline_data = 0;
  return asked;
}

inline ibv_qp* create_qp(ibv_pd* in, ibv_qp_init_attr* asked) {
  context& here = context::of(in->context);
  const auto most = here.knobs.max_qp_wr.load();
  const auto pieces = here.knobs.max_sge.load();
  const bool known =
      asked->qp_type == IBV_QPT_RC ||
      (here.knobs.iwarp == 0 && (asked->qp_type == IBV_QPT_UC || asked->qp_type == IBV_QPT_UD));
  if (!known) return null(EOPNOTSUPP);
  const bool takes = asked->srq == nullptr;
  if (asked->send_cq == nullptr || asked->recv_cq == nullptr || asked->cap.max_send_wr > most ||
      asked->cap.max_send_sge > pieces ||
      (takes && (asked->cap.max_recv_wr > most || asked->cap.max_recv_sge > pieces)) ||
      asked->cap.max_inline_data > here.knobs.max_inline.load() ||
      (!takes && asked->qp_type == IBV_QPT_UC)) {
    return null(EINVAL);
  }
  const ibv_qp_cap granted = grant(here.knobs, asked->cap);
  auto made = std::make_unique<queue_pair>();
  const std::size_t depth = std::max(granted.max_send_wr, 1U);
  made->requests.resize(depth);
  made->piece_store.resize(depth * granted.max_send_sge);
  made->inline_store.resize(depth * granted.max_inline_data);
  made->local.resize(granted.max_send_sge + std::size_t{1});  // and a GRH
  made->granted = granted;
  queue_pair_entry* entry = here.fabric->claim(here.fabric->shared().queue_pairs);
  if (entry == nullptr) return refuse(here.fabric->full("queue pairs", queue_pair_limit));
  undo free_entry{[&] {
    entry->number = 0;
    entry->owner = 0;
  }};
  domain& of = domain::of(in);
  if (takes) {
    auto opened = open_receive_queue(here, made->receives, granted.max_recv_wr,
                                     granted.max_recv_sge, of.number);
    if (!opened) return refuse(std::move(opened).error());
  } else {
    made->shared_receives = &shared_receive_queue::of(asked->srq);
  }
  undo close_receives{[&] { close_receive_queue(here, made->receives); }};
  made->entry = entry;
  made->index = static_cast<std::uint32_t>(entry - here.fabric->shared().queue_pairs.data());
  made->work = &here.fabric->work_on(made->index);
  made->posted = made->started = here.first_positions[made->index];
  made->retired = made->posted;
  // Place in the low bits, generation above; never 0 or 1, which are special on a real fabric.
  const std::uint32_t generation =
      here.knobs.reuse_numbers != 0 ? 1
                                    : here.fabric->shared().next_generation.fetch_add(1) % 4095 + 1;
  const std::uint32_t number = generation * queue_pair_limit + made->index;
  made->type = asked->qp_type;
  made->signal_all = asked->sq_sig_all != 0;
  made->send_queue = &completion_queue::of(asked->send_cq);
  made->receive_completions = &completion_queue::of(asked->recv_cq);
  entry->type = asked->qp_type;
  entry->domain = of.number;
  entry->access = 0;
  entry->peer = none;
  entry->qkey = 0;
  entry->receive_queue = takes ? made->receives.index : made->shared_receives->queue.index;
  entry->completion_queue = made->receive_completions->index;
  entry->rnr_timer = 0;
  entry->reads_answered = 0;
  entry->visiting = 0;
  entry->trouble = 0;
  entry->state = IBV_QPS_RESET;
  entry->number.store(number, std::memory_order_release);
  ibv_qp& native = made->native.qp_base;
  native.context = in->context;
  native.qp_context = asked->qp_context;
  native.pd = in;
  native.send_cq = asked->send_cq;
  native.recv_cq = asked->recv_cq;
  native.srq = asked->srq;
  native.handle = made->index;
  native.qp_num = number;
  native.state = IBV_QPS_RESET;
  native.qp_type = asked->qp_type;
  pthread_mutex_init(&native.mutex, nullptr);
  pthread_cond_init(&native.cond, nullptr);
  undo detach{[&] {
    for (completion_queue* each : {made->send_queue, made->receive_completions}) {
      const std::scoped_lock held{each->mutex};
      std::erase(each->attached, made.get());
    }
  }};
  for (completion_queue* each : {made->send_queue, made->receive_completions}) {
    const std::scoped_lock held{each->mutex};
    if (std::find(each->attached.begin(), each->attached.end(), made.get()) == each->attached.end())
      each->attached.push_back(made.get());
  }
  detach.keep();
  close_receives.keep();
  free_entry.keep();
  asked->cap = granted;
  ++of.users;
  if (!takes) ++made->shared_receives->users;
  here.queue_pairs[made->index].store(made.get(), std::memory_order_release);
  return &made.release()->native.qp_base;
}

/// After this nobody writes into the receives of a queue pair that has left for RESET; false where
/// a peer that does so now does not end.
inline bool receives_rest(context& here, queue_pair& of) noexcept {
  if (!visitors_leave(here)) return false;
  completion_queue& queue = *of.receive_completions;
  const std::scoped_lock held{queue.mutex};
  unload_waiting(queue, [&](const completion_slot& slot) {
    const bool is_its = once(slot.queue_pair) == of.native.qp_base.qp_num;
    return is_its ? find_own(here, once(slot.key), false) : region_view{};
  });
  return true;
}

/// Lets a channel wake when processes end that send to a queue pair.
inline void watch_peers(context& here, channel& by, const queue_pair& of) {
  const std::scoped_lock held{by.mutex};
  if (of.type == IBV_QPT_UD) {
    by.takes_datagrams = true;
    return watch_all(here, by);
  }
  const std::uint32_t place = of.attributes.dest_qp_num % queue_pair_limit;
  watch_process(here, by, here.fabric->shared().queue_pairs[place].owner.load());
}

/// As ibv_modify_qp, whoever asks. EBUSY where it has come to RESET, but a peer that is writing
/// into its receives does not end; that can be repeated.
inline int move_qp(ibv_qp* native, ibv_qp_attr* with, int mask) {
  queue_pair& of = queue_pair::of(native);
  context& here = context::of(native->context);
  {
    const std::scoped_lock held{of};
    const auto from = state_of(*of.entry);
    const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? with->qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) != 0 && with->cur_qp_state != from) return EINVAL;
    if (const int number = check_transition(of.type, from, to, mask); number != 0) return number;
    const std::uint32_t reads = here.knobs.max_reads.load();
    if (((mask & IBV_QP_PORT) != 0 && with->port_num != 1) ||
        ((mask & IBV_QP_PKEY_INDEX) != 0 && with->pkey_index != 0) ||
        ((mask & IBV_QP_PATH_MTU) != 0 &&
         (with->path_mtu < IBV_MTU_256 ||
          with->path_mtu > static_cast<ibv_mtu>(here.knobs.mtu.load()))) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && with->max_dest_rd_atomic > reads) ||
        ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && with->max_rd_atomic > reads) ||
        ((mask & IBV_QP_AV) != 0 &&
         (with->ah_attr.is_global == 0 || !has_gid(here, with->ah_attr.grh.sgid_index))) ||
        ((mask & IBV_QP_RETRY_CNT) != 0 && with->retry_cnt > 7) ||
        ((mask & IBV_QP_RNR_RETRY) != 0 && with->rnr_retry > 7) ||
        ((mask & IBV_QP_MIN_RNR_TIMER) != 0 && with->min_rnr_timer > 31) ||
        ((mask & IBV_QP_TIMEOUT) != 0 && with->timeout > 31)) {
      return EINVAL;
    }
    const auto set = [&](int bit, auto& into, const auto& value) {
      if ((mask & bit) != 0) into = value;
    };
    set(IBV_QP_ACCESS_FLAGS, of.attributes.qp_access_flags, with->qp_access_flags);
    set(IBV_QP_PORT, of.attributes.port_num, with->port_num);
    set(IBV_QP_QKEY, of.attributes.qkey, with->qkey);
    set(IBV_QP_AV, of.attributes.ah_attr, with->ah_attr);
    set(IBV_QP_PATH_MTU, of.attributes.path_mtu, with->path_mtu);
    set(IBV_QP_DEST_QPN, of.attributes.dest_qp_num, with->dest_qp_num);
    set(IBV_QP_RQ_PSN, of.attributes.rq_psn, with->rq_psn);
    set(IBV_QP_SQ_PSN, of.attributes.sq_psn, with->sq_psn);
    set(IBV_QP_MAX_DEST_RD_ATOMIC, of.attributes.max_dest_rd_atomic, with->max_dest_rd_atomic);
    set(IBV_QP_MAX_QP_RD_ATOMIC, of.attributes.max_rd_atomic, with->max_rd_atomic);
    set(IBV_QP_MIN_RNR_TIMER, of.attributes.min_rnr_timer, with->min_rnr_timer);
    set(IBV_QP_TIMEOUT, of.attributes.timeout, with->timeout);
    set(IBV_QP_RETRY_CNT, of.attributes.retry_cnt, with->retry_cnt);
    set(IBV_QP_RNR_RETRY, of.attributes.rnr_retry, with->rnr_retry);
    of.entry->access = of.attributes.qp_access_flags;
    of.entry->qkey = of.attributes.qkey;
    if ((mask & IBV_QP_DEST_QPN) != 0) of.entry->peer = of.attributes.dest_qp_num;
    of.entry->rnr_timer = of.attributes.min_rnr_timer;
    of.entry->reads_answered = of.attributes.max_dest_rd_atomic;
    if (to == IBV_QPS_RESET) {
      of.entry->state.store(to);
      flush{here, of}.drop_receives(false);
      // They go on counting: a completion from before this is polled later, and frees no place.
      of.started = of.posted;
      of.retired = of.posted;
      of.again_at = 0;
      of.tries = of.not_ready_tries = 0;
      of.receives_flushed = false;
      of.last_receive_told = false;
      of.attributes = {};
      of.entry->peer = none;
    }
    // The peer may have moved it to ERR meanwhile, from where none but these two are reached.
    std::uint32_t expected = from;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
      of.entry->state.store(to, std::memory_order_seq_cst);
    } else if (!of.entry->state.compare_exchange_strong(expected, to)) {
      return EINVAL;
    }
    native->state = to;
    requester{here, of}.run();
  }
  if (state_of(*of.entry) == IBV_QPS_RESET && !receives_rest(here, of)) return EBUSY;
  for (const ibv_cq* each : {native->send_cq, native->recv_cq}) {
    if (each->channel != nullptr && native->state == IBV_QPS_RTR)
      watch_peers(here, channel::of(each->channel), of);
  }
  return 0;
}

/// As ibv_modify_qp. On iWARP the CM alone connects queue pairs.
inline int modify_qp(ibv_qp* native, ibv_qp_attr* with, int mask) {
  const bool connects = (mask & IBV_QP_STATE) != 0 &&
                        (with->qp_state == IBV_QPS_RTR || with->qp_state == IBV_QPS_RTS);
  if (connects && context::of(native->context).knobs.iwarp != 0) return EINVAL;
  return move_qp(native, with, mask);
}

inline int query_qp(ibv_qp* native, ibv_qp_attr* into, int, ibv_qp_init_attr* made) {
  queue_pair& of = queue_pair::of(native);
  const std::scoped_lock held{of};
  *into = of.attributes;
  into->qp_state = into->cur_qp_state = state_of(*of.entry);
  into->cap = of.granted;
  native->state = into->qp_state;
  *made = {};
  made->qp_context = native->qp_context;
  made->send_cq = native->send_cq;
  made->recv_cq = native->recv_cq;
  made->srq = native->srq;
  made->cap = of.granted;
  made->qp_type = of.type;
  made->sq_sig_all = of.signal_all ? 1 : 0;
  return 0;
}

/// EBUSY where a peer that is writing into its receives does not end: it is in RESET then, and can
/// be destroyed later.
inline int destroy_qp(ibv_qp* native) {
  queue_pair& of = queue_pair::of(native);
  context& here = context::of(native->context);
  const bool is_copy = here.fabric->is_copy();
  if (!is_copy) {
    of.entry->state.store(IBV_QPS_RESET, std::memory_order_seq_cst);
    of.entry->number = 0;
    if (!receives_rest(here, of)) return EBUSY;
  }
  {
    const std::scoped_lock held{here.mutex};  // as get_async_event()
    here.queue_pairs[of.index].store(nullptr, std::memory_order_release);
  }
  if (!is_copy) wait_for_acknowledged(*native, native->events_completed, of.async_events);
  for (completion_queue* each : {of.send_queue, of.receive_completions}) {
    const std::scoped_lock held{each->mutex};
    std::erase(each->attached, &of);
  }
  if (of.waits) {
    of.send_queue->blocked.fetch_sub(1);
    here.waiting.fetch_sub(1);
  }
  close_receive_queue(here, of.receives);
  if (of.shared_receives != nullptr) --of.shared_receives->users;
  here.first_positions[of.index] = of.posted;
  if (!is_copy) of.entry->owner.store(0, std::memory_order_release);
  --domain::of(native->pd).users;
  pthread_cond_destroy(&native->cond);
  pthread_mutex_destroy(&native->mutex);
  delete &of;
  return 0;
}

}  // namespace verbena::soft::control
