// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include <verbena/soft/cm/ids.hpp>

/// From an id to an address: every address of this host leads to the device, and no other does.
namespace verbena::soft::cm {

/// 0 or an errno. Under the guard.
inline int bind_to(identifier& of, location at) {
  if (!at.is_here()) return EADDRNOTAVAIL;
  const int socket = take_some_port(of.here->fabric->path(), at, of.shares_port);
  if (socket < 0) return -socket;
  of.socket = socket;
  of.from = at;
  of.native.route.addr.src_storage = at.native();
  of.now = state::bound;
  if (!at.is_any()) bind_to_device(of);
  return 0;
}

/// Errors: EINVAL for one that is bound, EAFNOSUPPORT, EADDRNOTAVAIL, EADDRINUSE.
inline int bind_addr(rdma_cm_id* native, sockaddr* to) {
  identifier& of = identifier::of(native);
  const auto at = location::of(*to);
  if (!at) return minus_one(EAFNOSUPPORT);
  const std::scoped_lock held{guard};
  if (of.now != state::idle) return minus_one(EINVAL);
  const int number = bind_to(of, *at);
  return number == 0 ? 0 : minus_one(number);
}

/// `backlog`: how many peers may ask before their events are got; those that come on top of it are
/// refused with reason 3. 0 is 1024, as in the kernel.
inline int listen(rdma_cm_id* native, int backlog) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  int number = 0;
  if (of.now == state::idle) number = bind_to(of, location::any(AF_INET, 0));
  if (number == 0 && of.now != state::bound) number = EINVAL;
  constexpr int most = 1024;
  // The kernel's queue takes one more than it is told.
  if (number == 0 && ::listen(of.socket, (backlog > 0 ? std::min(backlog, most) : most) - 1) != 0)
    number = errno;
  if (number == 0) number = watch(of);
  if (number != 0) return minus_one(number);
  of.now = state::listening;
  return 0;
}

/// Takes no time, so no timeout. Addresses of other hosts are unreachable from here: ADDR_ERROR
/// with -ENETUNREACH.
inline int resolve_addr(rdma_cm_id* native, sockaddr* from, sockaddr* to, int) {
  identifier& of = identifier::of(native);
  auto there = location::of(*to);
  const auto here = from == nullptr ? std::nullopt : location::of(*from);
  if (!there || (from != nullptr && !here)) return minus_one(EAFNOSUPPORT);
  if (there->is_any()) there = location::loopback(there->family, there->port);
  const std::scoped_lock held{guard};
  if (of.now != state::idle && of.now != state::bound) return minus_one(EINVAL);
  of.on->make_room();
  if (!there->is_here()) {
    deliver(of, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
    of.on->settle();
    return 0;
  }
  if (of.now == state::idle) {
    location mine = here.value_or(*there);
    if (!here) mine.port = 0;
    if (const int number = bind_to(of, mine); number != 0) return minus_one(number);
  }
  if (of.from.family != there->family) return minus_one(EINVAL);
  if (of.from.is_any()) {
    of.from.bytes = there->bytes;
    of.from.scope = there->scope;
    of.native.route.addr.src_storage = of.from.native();
  }
  of.to = *there;
  of.native.route.addr.dst_storage = there->native();
  bind_to_device(of);
  deliver(of, RDMA_CM_EVENT_ADDR_RESOLVED);
  of.now = state::addressed;
  of.on->settle();
  return 0;
}

inline int resolve_route(rdma_cm_id* native, int) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  if (of.now != state::addressed) return minus_one(EINVAL);
  deliver(of, RDMA_CM_EVENT_ROUTE_RESOLVED);
  of.now = state::routed;
  of.on->settle();
  return 0;
}

}  // namespace verbena::soft::cm
