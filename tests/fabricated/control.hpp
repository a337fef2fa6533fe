// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <string>

#include <verbena/verbs/control_table.hpp>

#include "builder.hpp"
#include "machine.hpp"
#include "transition_rules.hpp"

/// The calls of a control table, each failing in the way of its namesake in libibverbs.
namespace fabricated::control {

/// For calls that return null and set errno, or leave it when a provider forgets to.
inline std::nullptr_t null(int error) {
  if (error != 0) errno = error;
  return nullptr;
}
inline int minus_one(int error) {
  if (error != 0) errno = error;
  return -1;
}

inline int close_device(ibv_context* native) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::close_device)) return minus_one(*refused);
  if (static_cast<context*>(native)->users != 0) {
    owner.violated("a device is closed under the objects made on it");
    return minus_one(EBUSY);
  }
  owner.died(kind::device, native);
  delete static_cast<context*>(native);
  return 0;
}

inline int query_device(ibv_context* native, ibv_device_attr* into) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::query_device)) return *refused;
  *into = owner.attributes;
  into->phys_port_cnt = static_cast<std::uint8_t>(owner.ports.size());
  return 0;
}

inline int query_port(ibv_context* native, std::uint8_t number, ibv_port_attr* into) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::query_port)) return *refused;
  if (number == 0 || number > owner.ports.size()) return EINVAL;
  const port& asked = owner.ports[number - 1U];
  *into = asked.attributes;
  into->gid_tbl_len = static_cast<int>(asked.gids.size());
  return 0;
}

inline int query_gid(ibv_context* native, std::uint32_t number, std::uint32_t index,
                     ibv_gid_entry* into) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::query_gid)) return *refused;
  if (number == 0 || number > owner.ports.size()) return EINVAL;
  const port& asked = owner.ports[number - 1U];
  if (index >= asked.gids.size()) return EINVAL;
  if (!asked.gids[index] && !asked.holes_are_zero) return ENODATA;
  *into = asked.gids[index].value_or(ibv_gid_entry{});
  into->gid_index = index;
  into->port_num = number;
  return 0;
}

inline ibv_pd* alloc_pd(ibv_context* native) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::alloc_pd)) return null(*refused);
  auto* made = new domain{};
  made->context = native;
  made->handle = owner.next_number();
  owner.born(kind::domain, made->context);
  return made;
}

inline int dealloc_pd(ibv_pd* native) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::dealloc_pd)) return *refused;
  domain& gone = machine::of(native);
  if (gone.users != 0) {
    owner.violated("a protection domain is deallocated under its users");
    return EBUSY;
  }
  if (gone.base != nullptr) {
    --gone.base->users;
    if (gone.thread != nullptr) --gone.thread->users;
  }
  owner.died(gone.base != nullptr ? kind::parent_domain : kind::domain, gone.context);
  delete &gone;
  return 0;
}

inline ibv_td* alloc_td(ibv_context* native, ibv_td_init_attr* asked) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::alloc_td)) return null(*refused);
  if (asked->comp_mask != 0) return null(EINVAL);
  auto* made = new thread_domain{};
  made->context = native;
  owner.born(kind::thread_domain, made->context);
  return made;
}

inline int dealloc_td(ibv_td* native) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::dealloc_td)) return *refused;
  thread_domain& gone = machine::of(native);
  if (gone.users != 0) {
    owner.violated("a thread domain is deallocated under its parent domains");
    return EBUSY;
  }
  owner.died(kind::thread_domain, gone.context);
  delete &gone;
  return 0;
}

inline ibv_pd* alloc_parent_domain(ibv_context* native, ibv_parent_domain_init_attr* asked) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::alloc_parent_domain)) return null(*refused);
  if (asked->pd == nullptr || asked->comp_mask != 0) return null(EINVAL);
  auto* made = new domain{};
  made->context = native;
  made->handle = asked->pd->handle;
  made->base = &machine::of(asked->pd);
  ++made->base->users;
  if (asked->td != nullptr) {
    made->thread = &machine::of(asked->td);
    ++made->thread->users;
  }
  owner.born(kind::parent_domain, made->context);
  return made;
}

inline ibv_mr* reg_mr(ibv_pd* native, void* address, std::size_t length, int access) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::reg_mr)) return null(*refused);
  const bool needs_write = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (length == 0 || (needs_write && (access & IBV_ACCESS_LOCAL_WRITE) == 0)) return null(EINVAL);
  if (length > owner.registration_limit - owner.registered_bytes) return null(ENOMEM);
  auto* made = new region{};
  made->context = native->context;
  made->pd = native;
  made->addr = address;
  made->length = length;
  made->handle = owner.next_number();
  // Never equal, so that one can not stand for the other.
  made->lkey = 0x1000'0000U + made->handle;
  made->rkey = 0x9000'0000U + made->handle * 256;
  made->access = access;
  owner.regions.insert(made);
  owner.registered_bytes += length;
  ++machine::of(native).users;
  owner.born(kind::region, made->context);
  return made;
}

inline int dereg_mr(ibv_mr* native) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::dereg_mr)) return *refused;
  region& gone = machine::of(native);
  const auto* first = static_cast<const volatile char*>(gone.addr);
  if (!machine::is_mapped(gone.addr)) {
    owner.violated("memory was given back before it was deregistered");
  } else {
    // AddressSanitizer sees here what a page table does not tell.
    (void)*first;
  }
  owner.regions.erase(&gone);
  owner.registered_bytes -= gone.length;
  --machine::of(gone.pd).users;
  owner.died(kind::region, gone.context);
  delete &gone;
  return 0;
}

inline ibv_comp_channel* create_comp_channel(ibv_context* native) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::create_comp_channel)) return null(*refused);
  auto* made = new channel{};
  made->context = native;
  made->fd = ::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  owner.born(kind::channel, made->context);
  return made;
}

inline int destroy_comp_channel(ibv_comp_channel* native) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::destroy_comp_channel)) return *refused;
  channel& gone = machine::of(native);
  if (gone.users != 0) {
    owner.violated("a completion channel is destroyed under its queues");
    return EBUSY;
  }
  ::close(gone.fd);
  owner.died(kind::channel, gone.context);
  delete &gone;
  return 0;
}

inline ibv_cq* create_cq(ibv_context* native, int entries, void* of, ibv_comp_channel* on, int) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::create_cq)) return null(*refused);
  if (entries < 1 || entries > owner.attributes.max_cqe) return null(EINVAL);
  auto* made = new completion_queue{};
  made->context = native;
  made->channel = on;
  made->cq_context = of;
  made->handle = owner.next_number();
  made->cqe = entries;
  if (on != nullptr) ++machine::of(on).users;
  owner.born(kind::completion_queue, made->context);
  return made;
}

inline int destroy_cq(ibv_cq* native) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::destroy_cq)) return *refused;
  completion_queue& gone = machine::of(native);
  if (gone.users != 0) {
    owner.violated("a completion queue is destroyed under its queue pairs");
    return EBUSY;
  }
  if (gone.events_acknowledged != gone.events_taken) {
    owner.violated(
        "a completion queue is destroyed with events unacknowledged: that blocks for ever");
  }
  if (gone.channel != nullptr) {
    channel& on = machine::of(gone.channel);
    for (std::size_t n = std::erase(on.events, &gone); n > 0; --n) {
      eventfd_t taken = 0;
      ::eventfd_read(on.fd, &taken);
    }
    --on.users;
  }
  owner.died(kind::completion_queue, gone.context);
  delete &gone;
  return 0;
}

inline int get_cq_event(ibv_comp_channel* native, ibv_cq** queue, void** of) {
  machine& owner = machine::of(native->context);
  {
    const std::scoped_lock held{owner.lock};
    if (const auto refused = owner.refuse.next(call::get_cq_event)) return minus_one(*refused);
  }
  // Outside the lock: on a blocking descriptor this sleeps, as it would with an adapter.
  eventfd_t taken = 0;
  if (::eventfd_read(native->fd, &taken) != 0) return -1;
  const std::scoped_lock held{owner.lock};
  channel& on = machine::of(native);
  completion_queue& first = *on.events.front();
  on.events.pop_front();
  ++first.events_taken;
  *queue = &first;
  *of = first.cq_context;
  return 0;
}

inline void ack_cq_events(ibv_cq* native, unsigned int count) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  (void)owner.refuse.next(call::ack_cq_events);
  completion_queue& queue = machine::of(native);
  queue.events_acknowledged += count;
  if (queue.events_acknowledged > queue.events_taken) {
    owner.violated("more events are acknowledged than were taken of this queue");
  }
}

inline queue_pair* make_queue_pair(machine& owner, ibv_pd* native, ibv_qp_init_attr* asked) {
  const auto above = [](std::uint32_t wanted, int allowed) {
    return wanted > static_cast<std::uint32_t>(allowed);
  };
  const ibv_qp_cap& wanted = asked->cap;
  const ibv_device_attr& limits = owner.attributes;
  if (above(wanted.max_send_wr, limits.max_qp_wr) || above(wanted.max_recv_wr, limits.max_qp_wr) ||
      above(wanted.max_send_sge, limits.max_sge) || above(wanted.max_recv_sge, limits.max_sge) ||
      wanted.max_inline_data > owner.inline_limit || asked->send_cq == nullptr ||
      asked->recv_cq == nullptr) {
    return null(EINVAL);
  }
  if (owner.native.transport_type == IBV_TRANSPORT_IWARP && asked->qp_type != IBV_QPT_RC) {
    return null(EOPNOTSUPP);
  }
  auto* whole = new queue_pair{};
  ibv_qp* const made = &whole->qp_base;
  made->context = native->context;
  made->qp_context = asked->qp_context;
  made->pd = native;
  made->send_cq = asked->send_cq;
  made->recv_cq = asked->recv_cq;
  made->srq = asked->srq;
  made->handle = owner.next_number();
  made->qp_num = 0x100 + made->handle;
  made->state = IBV_QPS_RESET;
  made->qp_type = asked->qp_type;
  whole->asked = *asked;
  owner.grant(asked->cap);
  whole->granted = asked->cap;
  whole->sends.limit = owner.send_slots != 0 ? owner.send_slots : asked->cap.max_send_wr;
  whole->receives.limit = owner.receive_slots != 0 ? owner.receive_slots : asked->cap.max_recv_wr;
  ++machine::of(native).users;
  ++machine::of(asked->send_cq).users;
  ++machine::of(asked->recv_cq).users;
  owner.born(kind::queue_pair, made->context);
  return whole;
}

inline ibv_qp* create_qp(ibv_pd* native, ibv_qp_init_attr* asked) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::create_qp)) return null(*refused);
  queue_pair* const made = make_queue_pair(owner, native, asked);
  return made == nullptr ? nullptr : &made->qp_base;
}

inline ibv_qp* create_qp_ex(ibv_context* native, ibv_qp_init_attr_ex* asked) {
  machine& owner = machine::of(native);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::create_qp_ex)) return null(*refused);
  constexpr std::uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (owner.native.transport_type == IBV_TRANSPORT_IWARP || asked->comp_mask != known ||
      (asked->send_ops_flags & ~owner.send_ops) != 0) {
    return null(EOPNOTSUPP);
  }
  ibv_qp_init_attr plain{};
  plain.qp_context = asked->qp_context;
  plain.send_cq = asked->send_cq;
  plain.recv_cq = asked->recv_cq;
  plain.srq = asked->srq;
  plain.cap = asked->cap;
  plain.qp_type = asked->qp_type;
  plain.sq_sig_all = asked->sq_sig_all;
  queue_pair* const made = make_queue_pair(owner, asked->pd, &plain);
  if (made == nullptr) return nullptr;
  asked->cap = plain.cap;
  made->send_ops = asked->send_ops_flags;
  builder::install(*made);
  return &made->qp_base;
}

inline ibv_qp_ex* to_qp_ex(ibv_qp* native) {
  queue_pair& pair = machine::of(native);
  return pair.send_ops != 0 ? &pair : nullptr;
}

/// EINVAL where an address is not fit for the port.
inline int check_address(const machine& owner, const ibv_ah_attr& address) {
  if (address.port_num == 0 || address.port_num > owner.ports.size()) return EINVAL;
  const port& by = owner.ports[address.port_num - 1U];
  const bool needs_gid = (by.attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  if (!address.is_global) return needs_gid || address.dlid == 0 ? EINVAL : 0;
  const std::size_t index = address.grh.sgid_index;
  return index < by.gids.size() && by.gids[index] ? 0 : EINVAL;
}

/// All or nothing: the queue pair changes only when everything is in order.
inline int modify_qp(ibv_qp* native, ibv_qp_attr* to, int mask) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::modify_qp)) return *refused;
  queue_pair& pair = machine::of(native);
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? to->qp_state : pair.qp_base.state;
  const auto rule = rule_of(pair.qp_base.qp_type, pair.qp_base.state, next);
  if (!rule || (mask & rule->required) != rule->required ||
      (mask & ~(rule->required | rule->optional)) != 0) {
    return EINVAL;
  }
  // iWARP queue pairs are connected by the CM alone; siw takes RTR for an answer all the same.
  if (owner.native.transport_type == IBV_TRANSPORT_IWARP && next == IBV_QPS_RTS) return EINVAL;
  if ((mask & IBV_QP_PORT) != 0 && (to->port_num == 0 || to->port_num > owner.ports.size())) {
    return EINVAL;
  }
  if ((mask & IBV_QP_AV) != 0) {
    if (const int error = check_address(owner, to->ah_attr); error != 0) return error;
  }
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    const std::uint8_t by =
        (mask & IBV_QP_AV) != 0 ? to->ah_attr.port_num : pair.attributes.port_num;
    if (to->path_mtu < IBV_MTU_256 || to->path_mtu > owner.ports[by - 1U].attributes.active_mtu) {
      return EINVAL;
    }
  }
  if (((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 &&
       to->max_dest_rd_atomic > owner.attributes.max_qp_rd_atom) ||
      ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 &&
       to->max_rd_atomic > owner.attributes.max_qp_init_rd_atom) ||
      ((mask & IBV_QP_RETRY_CNT) != 0 && to->retry_cnt > 7) ||
      ((mask & IBV_QP_RNR_RETRY) != 0 && to->rnr_retry > 7) ||
      ((mask & IBV_QP_TIMEOUT) != 0 && to->timeout > 31) ||
      ((mask & IBV_QP_MIN_RNR_TIMER) != 0 && to->min_rnr_timer > 31) ||
      ((mask & IBV_QP_RQ_PSN) != 0 && to->rq_psn > 0xff'ffff) ||
      ((mask & IBV_QP_SQ_PSN) != 0 && to->sq_psn > 0xff'ffff)) {
    return EINVAL;
  }

  pair.transitions.push_back({pair.qp_base.state, *to, mask});
  ibv_qp_attr& now = pair.attributes;
  if ((mask & IBV_QP_PKEY_INDEX) != 0) now.pkey_index = to->pkey_index;
  if ((mask & IBV_QP_PORT) != 0) now.port_num = to->port_num;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) now.qp_access_flags = to->qp_access_flags;
  if ((mask & IBV_QP_QKEY) != 0) now.qkey = to->qkey;
  if ((mask & IBV_QP_AV) != 0) now.ah_attr = to->ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) now.path_mtu = to->path_mtu;
  if ((mask & IBV_QP_DEST_QPN) != 0) now.dest_qp_num = to->dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) now.rq_psn = to->rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) now.sq_psn = to->sq_psn;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) now.max_dest_rd_atomic = to->max_dest_rd_atomic;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) now.max_rd_atomic = to->max_rd_atomic;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) now.min_rnr_timer = to->min_rnr_timer;
  if ((mask & IBV_QP_RETRY_CNT) != 0) now.retry_cnt = to->retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) now.rnr_retry = to->rnr_retry;
  if ((mask & IBV_QP_TIMEOUT) != 0) now.timeout = to->timeout;
  pair.qp_base.state = next;
  now.qp_state = next;
  now.cur_qp_state = next;
  if (next == IBV_QPS_ERR) owner.to_error(pair);
  return 0;
}

inline int query_qp(ibv_qp* native, ibv_qp_attr* into, int, ibv_qp_init_attr* made_with) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::query_qp)) return *refused;
  const queue_pair& pair = machine::of(native);
  *into = pair.attributes;
  into->qp_state = pair.qp_base.state;
  into->cur_qp_state = pair.qp_base.state;
  into->cap = pair.granted;
  *made_with = pair.asked;
  made_with->cap = pair.granted;
  return 0;
}

inline int destroy_qp(ibv_qp* native) {
  machine& owner = machine::of(native->context);
  const std::scoped_lock held{owner.lock};
  if (const auto refused = owner.refuse.next(call::destroy_qp)) return *refused;
  queue_pair& gone = machine::of(native);
  // Some providers drop what is left in the queues of a pair, some leave it: it is left here.
  for (ibv_cq* each : {gone.qp_base.send_cq, gone.qp_base.recv_cq}) {
    completion_queue& queue = machine::of(each);
    for (completion_queue::entry& entry : queue.entries) {
      if (entry.of == &gone) entry.of = nullptr;
    }
    --queue.users;
  }
  --machine::of(gone.qp_base.pd).users;
  owner.died(kind::queue_pair, gone.qp_base.context);
  delete &gone;
  return 0;
}

inline constexpr verbena::verbs::control_table table{
    .close_device = close_device,
    .query_device = query_device,
    .query_port = query_port,
    .query_gid = query_gid,
    .alloc_pd = alloc_pd,
    .dealloc_pd = dealloc_pd,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .create_comp_channel = create_comp_channel,
    .destroy_comp_channel = destroy_comp_channel,
    .create_cq = create_cq,
    .destroy_cq = destroy_cq,
    .get_cq_event = get_cq_event,
    .ack_cq_events = ack_cq_events,
    .create_qp = create_qp,
    .modify_qp = modify_qp,
    .query_qp = query_qp,
    .destroy_qp = destroy_qp,
    .create_qp_ex = create_qp_ex,
    .to_qp_ex = to_qp_ex,
    .alloc_td = alloc_td,
    .dealloc_td = dealloc_td,
    .alloc_parent_domain = alloc_parent_domain,
    .cm = nullptr,
};

}  // namespace fabricated::control
