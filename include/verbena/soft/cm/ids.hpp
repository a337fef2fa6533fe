// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include <verbena/soft/cm/dismantle.hpp>
#include <verbena/soft/control.hpp>

namespace verbena::soft::cm {

using control::minus_one;

inline rdma_event_channel* create_event_channel(ibv_context* of) {
  auto made = std::make_unique<event_channel>();
  made->here = &context::of(of);
  if (const int number = made->open(); number != 0) return control::null(number);
  return &made.release()->native;
}

inline void destroy_event_channel(rdma_event_channel* native) { delete &event_channel::of(native); }

/// Errors: EINVAL without a channel, EPROTONOSUPPORT for datagrams.
inline int create_id(rdma_event_channel* native, rdma_cm_id** made, void* own,
                     rdma_port_space space) {
  if (native == nullptr) return minus_one(EINVAL);
  if (space != RDMA_PS_TCP) return minus_one(EPROTONOSUPPORT);
  const std::scoped_lock held{guard};
  *made = &add_identifier(event_channel::of(native), own, space).native;
  return 0;
}

/// Waits until all events that were got of it are acknowledged (rdma_destroy_id(3)).
inline int destroy_id(rdma_cm_id* native) {
  identifier& of = identifier::of(native);
  std::unique_lock held{guard};
  stop(of);
  of.on->settle();
  if (!of.here->fabric->is_copy()) acknowledged.wait(held, [&] { return of.unacknowledged == 0; });
  forget(of);
  return 0;
}

/// With the events that wait; not before those that were got are acknowledged.
inline int migrate_id(rdma_cm_id* native, rdma_event_channel* native_to) {
  identifier& moved = identifier::of(native);
  event_channel& to = event_channel::of(native_to);
  std::unique_lock held{guard};
  if (to.here != moved.here) return minus_one(EINVAL);
  acknowledged.wait(held, [&] { return moved.unacknowledged == 0; });
  event_channel& from = *moved.on;
  if (&from == &to) return 0;
  const auto is_its = [&](const std::unique_ptr<event>& each) {
    return each->native.id == native || each->counted == &moved;
  };
  // What takes memory comes first, so that all of it is done or nothing.
  const auto waiting =
      static_cast<std::size_t>(std::count_if(from.events.begin(), from.events.end(), is_its));
  to.ids.reserve(to.ids.size() + 1 + moved.half_open.size() + waiting);
  std::size_t next = to.events.size();
  to.events.resize(next + waiting);
  int number = 0;
  const auto move = [&](identifier& each) {
    const bool watched = each.watched;
    unwatch(each);
    to.deadlines.insert(from.deadlines.extract({each.deadline, &each}));
    std::erase(from.ids, &each);
    to.ids.push_back(&each);
    each.on = &to;
    each.native.channel = native_to;
    if (watched && number == 0) number = watch(each);
  };
  move(moved);
  for (identifier* each : moved.half_open) move(*each);
  std::erase_if(from.events, [&](auto& each) {
    if (!is_its(each)) return false;
    if (each->native.id != native) move(identifier::of(each->native.id));
    to.events[next++] = std::move(each);
    return true;
  });
  from.settle();
  to.settle();
  return number == 0 ? 0 : minus_one(number);
}

/// Takes those of RDMA_OPTION_ID; the type of service has no meaning here.
inline int set_option(rdma_cm_id* native, int level, int name, void* value, std::size_t length) {
  identifier& of = identifier::of(native);
  if (level != RDMA_OPTION_ID) return minus_one(ENOSYS);
  const bool is_byte = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;
  if (name < RDMA_OPTION_ID_TOS || name > RDMA_OPTION_ID_ACK_TIMEOUT) return minus_one(ENOSYS);
  if (value == nullptr || length != (is_byte ? 1 : sizeof(int))) return minus_one(EINVAL);
  const std::scoped_lock held{guard};
  std::uint8_t byte = 0;
  int number = 0;
  std::memcpy(is_byte ? static_cast<void*>(&byte) : &number, value, length);
  if (name == RDMA_OPTION_ID_ACK_TIMEOUT) {
    if (byte > 31) return minus_one(EINVAL);
    of.ack_timeout = byte;
  } else if (name == RDMA_OPTION_ID_REUSEADDR) {
    of.shares_port = number != 0;
  } else if (name == RDMA_OPTION_ID_AFONLY) {
    of.one_family = number != 0;
  }
  return 0;
}

}  // namespace verbena::soft::cm
