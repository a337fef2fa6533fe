// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include <verbena/soft/cm/own_queue_pair.hpp>

/// From an address to a connection and back.
namespace verbena::soft::cm {

/// Until when a peer must answer. Under the kernel's CM it may take minutes; knobs::cm_timeout_ms.
inline std::int64_t answer_time(const context& here) noexcept {
  return cm::now() + std::int64_t{here.knobs.cm_timeout_ms.load()} * 1'000'000;
}

/// The message that a request or a response is; false for parameters that the kernel refuses too.
inline bool fill(identifier& of, message& what, const rdma_conn_param* with) noexcept {
  if (with == nullptr || with->private_data_len > message::most(what.what) ||
      (with->private_data_len != 0 && with->private_data == nullptr))
    return false;
  const auto most = static_cast<std::uint8_t>(of.here->knobs.max_reads.load());
  const auto depth = [&](std::uint8_t asked) { return asked == RDMA_MAX_RESP_RES ? most : asked; };
  what.responder_resources = depth(with->responder_resources);
  what.initiator_depth = depth(with->initiator_depth);
  if (what.responder_resources > most || what.initiator_depth > most) return false;
  (void)!::getrandom(&of.sequence, sizeof of.sequence, GRND_NONBLOCK);
  of.sequence &= 0xff'ffff;
  what.sequence = of.sequence;
  of.queue_pair = with->qp_num & 0xff'ffff;
  what.queue_pair = of.queue_pair;
  what.mtu = active_mtu(&of.here->native);
  what.flow_control = with->flow_control;
  what.retry_count = with->retry_count & 7;
  what.rnr_retry_count = with->rnr_retry_count & 7;
  what.shared_receives = with->srq;
  what.from = of.from;
  what.to = of.to;
  what.carry({static_cast<const std::byte*>(with->private_data), with->private_data_len});
  return true;
}

/// Connects the socket to whoever listens at the address: one there, then at a wildcard. 0 or an
/// errno, ECONNREFUSED for nobody.
inline int reach_listener(const identifier& of) noexcept {
  const std::array<location, 3> names{of.to, location::any(of.to.family, of.to.port),
                                      location::any(AF_INET6, of.to.port)};
  for (const location& each : names) {
    const socket_name name{of.here->fabric->path(), each};
    if (::connect(of.socket, name.address(), name.length) == 0)
      return same_user(of.socket) ? 0 : EACCES;
    if (errno != ECONNREFUSED) return errno;
  }
  return ECONNREFUSED;
}

/// Errors: EINVAL for parameters over the limits and before the route is resolved.
inline int connect(rdma_cm_id* native, rdma_conn_param* with) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  message what;
  what.what = message::request;
  if (of.now != state::routed || !fill(of, what, with)) return minus_one(EINVAL);
  of.on->make_room();
  of.retry_count = what.retry_count;
  of.on->expect_by(of, answer_time(*of.here));
  of.now = state::connecting;
  if (of.here->knobs.partitioned == 0) {
    int number = reach_listener(of);
    const bool reached = number == 0;
    if (reached) {
      (void)send(of, what);
      number = watch(of);
    }
    if (number != 0) hang_up(of);
    if (number == ECONNREFUSED) {
      deliver(of, RDMA_CM_EVENT_REJECTED, nobody_listens);
    } else if (number == EAGAIN && !reached) {
      deliver(of, RDMA_CM_EVENT_REJECTED, no_resources);
    } else if (number != 0) {
      deliver(of, RDMA_CM_EVENT_CONNECT_ERROR, -number);
    }
  }
  of.on->settle();
  return 0;
}

/// After CONNECT_RESPONSE. Errors: EINVAL, also when the peer has gone meanwhile.
inline int establish(rdma_cm_id* native) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  if (of.now != state::answered) return minus_one(EINVAL);
  message what;
  what.what = message::ready;
  (void)send(of, what);  // a peer that has gone is noticed by the end of the socket
  of.now = state::connected;
  return 0;
}

/// Errors: EINVAL for parameters over the limits, and when the peer has gone meanwhile.
inline int accept(rdma_cm_id* native, rdma_conn_param* with) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  message what;
  what.what = message::response;
  if (of.now != state::requested || !fill(of, what, with)) return minus_one(EINVAL);
  of.responder_resources = what.responder_resources;
  of.initiator_depth = what.initiator_depth;
  if (of.here->knobs.iwarp != 0) {
    if (const int number = connect_queue_pair(of); number != 0) return minus_one(number);
  }
  of.on->expect_by(of, answer_time(*of.here));
  if (!send(of, what)) {
    hang_up(of);
    return minus_one(EINVAL);
  }
  of.now = state::accepted;
  of.on->settle();
  return 0;
}

/// Errors: EINVAL for more than 148 bytes, and when there is nothing to reject any more.
inline int reject(rdma_cm_id* native, const void* data, std::uint8_t length) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  const bool can =
      of.now == state::requested || of.now == state::accepted || of.now == state::answered;
  if (!can || length > refusal_bytes || (length != 0 && data == nullptr)) return minus_one(EINVAL);
  refuse(of, consumer, {static_cast<const std::byte*>(data), length});
  hang_up(of);
  of.on->settle();
  return 0;
}

/// Says goodbye, or answers the peer's. DISCONNECTED comes when both have. Errors: EINVAL for an id
/// that has not begun to connect.
inline int disconnect(rdma_cm_id* native) {
  identifier& of = identifier::of(native);
  const std::scoped_lock held{guard};
  if (of.now < state::half_open) return minus_one(EINVAL);
  message what;
  what.what = message::goodbye;
  if (of.now == state::connected) {
    of.on->expect_by(of, answer_time(*of.here));
    (void)send(of, what);
    of.now = state::leaving;
  } else if (of.now == state::left) {
    (void)send(of, what);
    hang_up(of);
  }
  of.on->settle();
  return 0;
}

}  // namespace verbena::soft::cm
