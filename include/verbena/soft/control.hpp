// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include <verbena/soft/data_path.hpp>
#include <verbena/soft/forked.hpp>
#include <verbena/soft/mapped_memory.hpp>
#include <verbena/soft/refusal.hpp>
#include <verbena/soft/transitions.hpp>
#include <verbena/soft/undo.hpp>

/// What the device seam calls on the software device. Each function reports as its namesake in
/// libibverbs does.
namespace verbena::soft::control {

inline std::nullptr_t null(int number) noexcept {
  last_refusal.reset();
  errno = number;
  return nullptr;
}
inline int minus_one(int number) noexcept {
  errno = number;
  return -1;
}

inline int close_device(ibv_context* native) {
  context& here = context::of(native);
  forked::forget(here);
  for (const int each : {here.wake_sender, here.async_wake, native->async_fd}) {
    if (each >= 0) ::close(each);
  }
  pthread_mutex_destroy(&native->mutex);
  delete &here;
  return 0;
}

inline int query_device(ibv_context* native, ibv_device_attr* into) {
  const context& here = context::of(native);
  *into = {};
  std::strncpy(into->fw_ver, "soft", sizeof into->fw_ver - 1);
  into->max_mr_size = std::uint64_t{1} << 46;
  into->page_size_cap = 4096;
  into->max_qp = queue_pair_limit;
  into->max_qp_wr = static_cast<int>(here.knobs.max_qp_wr.load());
  into->max_sge = static_cast<int>(here.knobs.max_sge.load());
  into->max_sge_rd = here.knobs.iwarp != 0 ? 1 : into->max_sge;
  into->max_cq = completion_queue_limit;
  into->max_cqe = 1 << 20;
  into->max_mr = region_limit;
  into->max_pd = 1 << 16;
  into->max_qp_rd_atom = static_cast<int>(here.knobs.max_reads.load());
  into->max_qp_init_rd_atom = static_cast<int>(here.knobs.max_reads.load());
  into->max_res_rd_atom = into->max_qp_rd_atom * into->max_qp;
  // Atomics here are the processor's own.
  into->atomic_cap = here.knobs.iwarp != 0 ? IBV_ATOMIC_NONE : IBV_ATOMIC_GLOB;
  into->max_ah = 1 << 16;
  into->max_srq = receive_queue_limit;
  into->max_srq_wr = into->max_qp_wr;
  into->max_srq_sge = into->max_sge;
  into->max_pkeys = 1;
  into->phys_port_cnt = 1;
  return 0;
}

inline constexpr std::uint32_t gid_places = 4;

/// Whether there is a GID at a place of the table.
inline bool has_gid(const context& here, std::uint32_t index) noexcept {
  return index < gid_places && (here.knobs.gid_holes >> index & 1) == 0;
}

inline int query_port(ibv_context* native, std::uint8_t port, ibv_port_attr* into) {
  const context& here = context::of(native);
  if (port != 1) return EINVAL;
  *into = {};
  into->state = IBV_PORT_ACTIVE;
  into->max_mtu = IBV_MTU_4096;
  into->active_mtu = static_cast<ibv_mtu>(here.knobs.mtu.load());
  into->gid_tbl_len = gid_places;
  into->max_msg_sz = here.knobs.max_message.load();
  into->pkey_tbl_len = 1;
  into->link_layer = IBV_LINK_LAYER_ETHERNET;
  into->active_speed = 1;
  into->active_width = 1;
  return 0;
}

/// The table of GIDs: link-local and 127.0.0.1, each as RoCE v1 and v2. ENODATA where there is
/// none.
inline int query_gid(ibv_context* native, std::uint32_t port, std::uint32_t index,
                     ibv_gid_entry* into) {
  if (port != 1 || index >= gid_places) return EINVAL;
  if (!has_gid(context::of(native), index)) return ENODATA;
  *into = {};
  into->gid_index = index;
  into->port_num = port;
  into->gid_type = index % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
  if (index < 2) {
    into->gid.raw[0] = 0xfe;
    into->gid.raw[1] = 0x80;
    into->gid.raw[15] = 1;
  } else {
    into->gid.raw[10] = 0xff;
    into->gid.raw[11] = 0xff;
    into->gid.raw[12] = 127;
    into->gid.raw[15] = 1;
  }
  return 0;
}

inline ibv_pd* alloc_pd(ibv_context* native) {
  context& here = context::of(native);
  auto* made = new (std::nothrow) domain;
  if (made == nullptr) return null(ENOMEM);
  made->native.context = native;
  // The owner number's place and a count: no two on the fabric are alike while both live.
  made->number = place_of(here.fabric->me()) << 24 | (here.domains.fetch_add(1) & 0xff'ffff);
  return &made->native;
}

inline int dealloc_pd(ibv_pd* native) {
  domain& of = domain::of(native);
  if (of.users != 0) return EBUSY;
  delete &of;
  return 0;
}

/// As ibv_destroy_cq(3), ibv_get_async_event(3): what events have been got of is not destroyed
/// before they have been acknowledged.
template <class Native>
void wait_for_acknowledged(Native& of, const std::uint32_t& acknowledged, std::uint32_t got) {
  pthread_mutex_lock(&of.mutex);
  while (acknowledged != got) pthread_cond_wait(&of.cond, &of.mutex);
  pthread_mutex_unlock(&of.mutex);
}
template <class Native>
void acknowledge(Native& of, std::uint32_t& acknowledged, std::uint32_t count) {
  pthread_mutex_lock(&of.mutex);
  acknowledged += count;
  pthread_cond_signal(&of.cond);
  pthread_mutex_unlock(&of.mutex);
}

/// Shared memory of whole pages, known to the other processes; for verbena's allocator.
inline void* allocate(ibv_context* native, std::size_t length) {
  auto made = context::of(native).fabric->allocate(length);
  if (!made) return refuse(std::move(made).error());
  return made.value().base;
}

inline void release(ibv_context* native, void* memory, std::size_t) {
  fabric& on = *context::of(native).fabric;
  const fabric::mapped_arena found = on.locate(reinterpret_cast<std::uintptr_t>(memory), 0);
  if (found.base == memory) on.release(found.name);
}

inline ibv_mr* reg_mr(ibv_pd* of, void* address, std::size_t length, int access) {
  context& here = context::of(of->context);
  constexpr int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  constexpr int known =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | writes | IBV_ACCESS_RELAXED_ORDERING;
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  if ((access & ~known) != 0 ||
      ((access & writes) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) || base + length < base ||
      (length == 0 && here.knobs.iwarp != 0)) {
    return null(EINVAL);
  }
  const fabric::mapped_arena in = here.fabric->locate(base, length);
  const bool writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  if (in.base == nullptr && !mapped_memory{}.holds(base, length, writable)) return null(EFAULT);
  auto made = std::make_unique<region>();
  region_entry* entry = here.fabric->claim(here.fabric->shared().regions);
  if (entry == nullptr) return refuse(here.fabric->full("memory regions", region_limit));
  const auto place = static_cast<std::uint32_t>(entry - here.fabric->shared().regions.data());
  std::uint32_t generation = (entry->generation.load() | 1U);
  if (generation == entry->generation.load()) generation += 2;
  domain& owner = domain::of(of);
  const region_view view{here.fabric->me(),
                         owner.number,
                         static_cast<std::uint32_t>(access),
                         base,
                         length,
                         in.name,
                         in.base == nullptr ? 0 : base - reinterpret_cast<std::uintptr_t>(in.base)};
  for (region_entry* each : {&here.regions[place], entry}) {
    each->owner = view.owner;
    each->domain = view.domain;
    each->access = view.access;
    each->base = view.base;
    each->length = view.length;
    each->arena = view.arena.index;
    each->arena_generation = view.arena.generation;
    each->offset = view.offset;
    each->seal = seal_of(view, generation);
    each->generation.store(generation, std::memory_order_seq_cst);
  }
  ++owner.users;
  made->entry = entry;
  made->native.context = of->context;
  made->native.pd = of;
  made->native.addr = address;
  made->native.length = length;
  made->native.handle = place;
  made->native.lkey = make_key(place, generation, false);
  made->native.rkey = make_key(place, generation, true);
  return &made.release()->native;
}

/// Waits until nobody is touching this process's memory; false where somebody still is after a
/// second.
inline bool visitors_leave(const context& here) noexcept {
  return here.fabric->visitors_leave(here.fabric->me(), 1'000'000'000);
}

/// Messages that have come for a region and wait in their completions are put into it.
inline void unload_all(context& here, const ibv_mr& of) {
  const region_view region = view_of(here.regions[of.handle]);
  const std::scoped_lock held{here.mutex};
  for (completion_queue* each : here.queues) {
    const std::scoped_lock polling{each->mutex};
    unload_waiting(*each, [&](const completion_slot& slot) {
      return once(slot.key) == of.lkey ? region : region_view{};
    });
  }
}

/// Takes a region away from all processes; false where an access under way does not end.
inline bool withdraw(context& here, const region& of) {
  region_entry& mine = here.regions[of.native.handle];
  const std::uint32_t dead = (mine.generation.load() + 1) & ~1U;
  mine.generation.store(dead, std::memory_order_seq_cst);
  of.entry->generation.store(dead, std::memory_order_seq_cst);
  if (!visitors_leave(here)) return false;
  unload_all(here, of.native);
  mine.owner.store(0, std::memory_order_relaxed);
  of.entry->owner.store(0, std::memory_order_release);
  return true;
}

/// After this no access begins; those under way in any process are waited for. EBUSY where one
/// does not end: the keys are dead and the rest can be tried again.
inline int dereg_mr(ibv_mr* native) {
  auto& of = *reinterpret_cast<region*>(native);
  context& here = context::of(native->context);
  if (!here.fabric->is_copy() && !withdraw(here, of)) return EBUSY;
  --domain::of(native->pd).users;
  delete &of;
  return 0;
}

inline ibv_comp_channel* create_comp_channel(ibv_context* native) {
  context& here = context::of(native);
  auto made = std::make_unique<channel>();
  made->native.context = native;
  made->native.fd = ::epoll_create1(EPOLL_CLOEXEC);
  made->wake = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  made->timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  static std::atomic<std::uint32_t> names{0};
  int number = made->native.fd < 0 || made->wake < 0 || made->timer < 0 ? errno : 0;
  for (int tries = 0; number == 0 && tries < 1000; ++tries) {
    made->name = ++names;
    const wake_address at{*here.fabric, here.fabric->me(), made->name};
    if (::bind(made->wake, reinterpret_cast<const sockaddr*>(&at.name), at.length) == 0) break;
    if (errno != EADDRINUSE) number = errno;
  }
  for (const int each : {made->wake, made->timer}) {
    epoll_event watch{};
    watch.events = EPOLLIN;
    watch.data.fd = each;
    if (number == 0 && ::epoll_ctl(made->native.fd, EPOLL_CTL_ADD, each, &watch) != 0)
      number = errno;
  }
  if (number != 0) return null(number);
  made->watched.reserve(process_limit);
  const std::scoped_lock held{here.mutex};
  here.channels.push_back(made.get());
  return &made.release()->native;
}

inline int destroy_comp_channel(ibv_comp_channel* native) {
  channel& of = channel::of(native);
  context& here = context::of(native->context);
  {
    const std::scoped_lock held{here.mutex, of.mutex};
    if (!of.queues.empty()) return EBUSY;
    std::erase(here.channels, &of);
  }
  delete &of;
  return 0;
}

inline ibv_cq* create_cq(ibv_context* native, int entries, void* own, ibv_comp_channel* on,
                         int vector) {
  context& here = context::of(native);
  if (entries <= 0 || entries > 1 << 20 || vector != 0) return null(EINVAL);
  auto made = std::make_unique<completion_queue>();
  completion_queue_entry* entry = here.fabric->claim(here.fabric->shared().completion_queues);
  if (entry == nullptr) {
    return refuse(here.fabric->full("completion queues", completion_queue_limit));
  }
  undo free_entry{[&] { entry->owner = 0; }};
  const std::uint32_t slots = std::bit_ceil(static_cast<std::uint32_t>(entries));
  if (here.knobs.round_up_depths != 0) entries = static_cast<int>(slots);
  auto ring = here.fabric->allocate(std::size_t{slots} * completion_stride);
  if (!ring) return refuse(std::move(ring).error());
  undo free_ring{[&] {
    entry->ring.seal = 0;
    here.fabric->release(ring.value().name);
  }};
  made->entry = entry;
  made->index = static_cast<std::uint32_t>(entry - here.fabric->shared().completion_queues.data());
  made->ordinal = ++here.queues_made;
  made->arena = ring.value().name;
  made->ring = reinterpret_cast<completion_slot*>(ring.value().base);
  made->mask = slots - 1;
  made->claims = claims_of(made->ring, made->mask);
  for (std::uint32_t i = 0; i < slots; ++i) {
    made->ring[i].turn = make_turn(i, 0, vacant);
    made->claims[i] = make_turn(i, 0, vacant);
  }
  entry->head = 0;
  entry->head_seen = 0;
  entry->tail = 0;
  entry->limit = static_cast<std::uint32_t>(entries);
  entry->armed = disarmed;
  entry->failed = 0;
  entry->look = 0;
  entry->wake = on == nullptr ? 0 : channel::of(on).name;
  seal(entry->ring, here.fabric->me(), made->arena, made->mask, completion_stride);
  made->native.context = native;
  made->native.channel = on;
  made->native.cq_context = own;
  made->native.cqe = entries;
  made->native.handle = made->index;
  pthread_mutex_init(&made->native.mutex, nullptr);
  pthread_cond_init(&made->native.cond, nullptr);
  {
    const std::scoped_lock held{here.mutex};
    here.queues.push_back(made.get());
  }
  undo unlist{[&] {
    const std::scoped_lock held{here.mutex};
    std::erase(here.queues, made.get());
  }};
  if (on != nullptr) {
    const std::scoped_lock held{channel::of(on).mutex};
    channel::of(on).queues.push_back(made.get());
  }
  unlist.keep();
  free_ring.keep();
  free_entry.keep();
  return &made.release()->native;
}

inline int destroy_cq(ibv_cq* native) {
  completion_queue& of = completion_queue::of(native);
  context& here = context::of(native->context);
  {
    const std::scoped_lock held{of.mutex};
    if (!of.attached.empty()) return EBUSY;
  }
  if (native->channel != nullptr) {
    const std::scoped_lock held{channel::of(native->channel).mutex};
    std::erase(channel::of(native->channel).queues, &of);
  }
  {
    const std::scoped_lock held{here.mutex};
    std::erase(here.queues, &of);
  }
  const bool is_copy = here.fabric->is_copy();
  if (!is_copy) {
    wait_for_acknowledged(*native, native->comp_events_completed, of.events);
    wait_for_acknowledged(*native, native->async_events_completed, of.async_events);
    of.entry->generation.fetch_add(1);
    of.entry->ring.seal = 0;
  }
  here.fabric->release(of.arena);
  if (!is_copy) of.entry->owner.store(0, std::memory_order_release);
  pthread_cond_destroy(&native->cond);
  pthread_mutex_destroy(&native->mutex);
  delete &of;
  return 0;
}

/// Does what a channel has woken for, and what no one else has: an event whose giver died.
inline void attend(context& here, channel& of) {
  char nothing[16];
  while (::recv(of.wake, nothing, sizeof nothing, 0) >= 0) {
  }
  clear_timer(of);
  const std::scoped_lock held{of.mutex};  // so that none of its queues is destroyed meanwhile
  forget_ended(of);
  if (of.takes_datagrams) watch_all(here, of);  // also who has come since
  for (completion_queue* each : of.queues) {
    const std::scoped_lock polling{each->mutex};
    progress(here, *each);
    bool any_came = each->entry->failed.load() != 0;
    bool solicited_came = any_came;
    const std::uint64_t end = end_of_given(here, *each);
    for (std::uint64_t at = std::max(each->head.load(), each->armed_at);
         !solicited_came && at < end; ++at) {
      const completion_slot& slot = each->ring[at & each->mask];
      if (!is_full(slot, at)) break;
      any_came = true;
      solicited_came = (slot.marks & is_solicited) != 0;
    }
    if (any_came) fire(here, *each->entry, solicited_came);
    wake_for_kept(here, *each);
  }
}

/// Blocks where the descriptor is not O_NONBLOCK, else gives EAGAIN where nothing has been given.
inline int get_cq_event(ibv_comp_channel* native, ibv_cq** queue, void** own) {
  channel& of = channel::of(native);
  context& here = context::of(native->context);
  const auto get = [&] {
    const std::scoped_lock held{of.mutex};
    for (completion_queue* each : of.queues) {
      std::uint32_t armed = each->entry->armed.load();
      while (armed >= fired) {
        const std::uint32_t next = armed == fired ? disarmed : armed == fired_any ? any : solicited;
        if (!each->entry->armed.compare_exchange_weak(armed, next)) continue;
        ++each->events;
        *queue = &each->native;
        *own = each->native.cq_context;
        return true;
      }
    }
    return false;
  };
  for (;;) {
    if (get()) return 0;
    attend(here, of);
    if (get()) return 0;
    if ((::fcntl(native->fd, F_GETFL) & O_NONBLOCK) != 0) return minus_one(EAGAIN);
    pollfd look{native->fd, POLLIN, 0};
    if (::poll(&look, 1, -1) < 0) return -1;
  }
}

/// As ibv_ack_cq_events: destroying waits for it.
inline void ack_cq_events(ibv_cq* native, unsigned int count) {
  acknowledge(*native, native->comp_events_completed, count);
}

}  // namespace verbena::soft::control
