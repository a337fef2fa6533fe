// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include <verbena/soft/cm/dismantle.hpp>
#include <verbena/soft/cm/own_queue_pair.hpp>

/// What a channel's descriptor has woken for. All of it under the guard.
namespace verbena::soft::cm {

inline void learn(identifier& of, const message& said) noexcept {
  of.peer_queue_pair = said.queue_pair;
  of.peer_sequence = said.sequence;
  of.peer_mtu = said.mtu;
  of.responder_resources = said.initiator_depth;
  of.initiator_depth = said.responder_resources;
  of.rnr_retry_count = said.rnr_retry_count;
}

/// The first message on a socket that a listener has accepted.
inline void on_request(identifier& of, const message& said) {
  identifier& listener = *of.listener;
  const std::uint32_t refused = of.here->knobs.cm_refuse.load();
  if (said.what != message::request) return dismantle(of);
  std::uint16_t why = static_cast<std::uint16_t>(refused);
  if (listener.one_family && said.to.family != listener.from.family) why = nobody_listens;
  if (!of.here->fabric->alive(said.process)) why = not_this_fabric;
  if (why != 0) {
    refuse(of, why);
    return dismantle(of);
  }
  of.on->expect_by(of, 0);
  if (of.here->knobs.cm_drop_request.is_nth()) return unwatch(of);  // goes with the listener
  std::erase(listener.half_open, &of);
  of.from = said.to;
  of.to = said.from;
  of.native.route.addr.src_storage = said.to.native();
  of.native.route.addr.dst_storage = said.from.native();
  of.retry_count = said.retry_count;
  learn(of, said);
  of.now = state::requested;
  deliver(of, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &said);
}

/// Whether the program hears of the end of a connection in this state. Of a request that it has
/// not answered it does not, as under the kernel's CM: its calls fail with EINVAL.
inline bool is_told(state of) noexcept {
  return of != state::requested && of != state::left && of != state::over;
}

inline bool was_connected(state of) noexcept {
  return of == state::connected || of == state::leaving;
}

inline void on_refusal(identifier& of, const message& said) {
  const state was = of.now;
  hang_up(of);
  if (!is_told(was)) return;
  if (was_connected(was)) {
    deliver(of, RDMA_CM_EVENT_DISCONNECTED);
  } else {
    deliver(of, RDMA_CM_EVENT_REJECTED, said.why, &said);
  }
}

inline void on_goodbye(identifier& of) {
  if (of.now == state::requested) hang_up(of);
  if (!is_told(of.now)) return;
  const bool both = of.now == state::leaving;
  if (of.here->knobs.iwarp != 0) fail_queue_pair(of);
  deliver(of, RDMA_CM_EVENT_DISCONNECTED);
  if (both) return hang_up(of);
  of.on->expect_by(of, 0);
  of.now = state::left;
}

/// The connection ends otherwise. Under half_open nobody knows of it.
inline void end(identifier& of, rdma_cm_event_type before, int status, int once_connected) {
  const state was = of.now;
  if (was == state::half_open) return dismantle(of);
  hang_up(of);
  const bool moved = was_connected(was) || was == state::accepted;
  if (moved && of.here->knobs.iwarp != 0) fail_queue_pair(of);
  if (!is_told(was)) return;
  if (was_connected(was)) {
    deliver(of, RDMA_CM_EVENT_DISCONNECTED, once_connected);
  } else {
    deliver(of, before, status);
  }
}

/// What no peer of this version says now.
inline void on_nonsense(identifier& of) { end(of, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO, -EPROTO); }

/// The peer has closed its socket without a word: it has died, or disconnected by destroying.
inline void on_end(identifier& of) { end(of, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET, 0); }

/// On iWARP the response makes the connection, as far as the active end's program sees.
inline void on_iwarp_response(identifier& of, const message& said) {
  if (const int number = connect_queue_pair(of); number != 0)
    return end(of, RDMA_CM_EVENT_CONNECT_ERROR, -number, -number);
  message what;
  what.what = message::ready;
  (void)send(of, what);
  of.now = state::connected;
  deliver(of, RDMA_CM_EVENT_ESTABLISHED, 0, &said);
}

inline void on_message(identifier& of, const message& said) {
  if (of.now == state::half_open) return on_request(of, said);
  switch (said.what) {
    case message::refusal: return on_refusal(of, said);
    case message::goodbye: return on_goodbye(of);
    case message::response:
      if (of.now != state::connecting) return on_nonsense(of);
      learn(of, said);
      of.on->expect_by(of, 0);
      of.now = state::answered;
      if (of.here->knobs.iwarp != 0) return on_iwarp_response(of, said);
      return deliver(of, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &said);
    case message::ready:
      if (of.now == state::leaving) return;
      if (of.now != state::accepted) return on_nonsense(of);
      of.on->expect_by(of, 0);
      of.now = state::connected;
      return deliver(of, RDMA_CM_EVENT_ESTABLISHED);
    default: return on_nonsense(of);
  }
}

inline void receive(identifier& of) {
  message said;
  ssize_t size = ::recv(of.socket, &said, sizeof said, MSG_DONTWAIT | MSG_TRUNC);
  // The error of a peer that closed with our message unread comes before what it has said.
  if (size < 0 && errno == ECONNRESET)
    size = ::recv(of.socket, &said, sizeof said, MSG_DONTWAIT | MSG_TRUNC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return on_end(of);
  if (of.here->knobs.partitioned) return;
  if (!said.check(static_cast<std::size_t>(size))) return on_nonsense(of);
  on_message(of, said);
}

/// Takes one peer from a listener's socket; 0 or an errno. Those not taken count in its backlog.
inline int accept_one(identifier& listener) {
  // What takes memory comes first: the peer is not lost, it stays in the backlog.
  identifier& made = add_identifier(*listener.on, listener.native.context, listener.native.ps);
  undo forget_it{[&] { dismantle(made); }};
  listener.half_open.push_back(&made);
  made.listener = &listener;
  constexpr std::int64_t request_time = 5'000'000'000;
  made.on->expect_by(made, cm::now() + request_time);
  made.socket = ::accept4(listener.socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (made.socket < 0)
    return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : errno;
  if (!same_user(made.socket)) return 0;
  made.now = state::half_open;
  bind_to_device(made);
  const int number = watch(made);
  if (number == 0) forget_it.keep();
  return number;
}

inline void expire(event_channel& on) {
  const std::int64_t at = cm::now();
  while (!on.deadlines.empty() && on.deadlines.begin()->first <= at) {
    on.make_room();
    identifier& of = *on.deadlines.begin()->second;
    if (of.now == state::connecting || of.now == state::accepted) refuse(of, timed_out);
    end(of, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -ETIMEDOUT);
  }
}

/// Does what there is to do until there is an event to be got; 0 or an errno.
inline int attend(event_channel& on) {
  int number = 0;
  expire(on);
  epoll_event ready{};
  while (number == 0 && !on.has_event() && ::epoll_wait(on.native.fd, &ready, 1, 0) == 1) {
    if (ready.data.ptr == &on.pending || ready.data.ptr == &on.timer) {
      expire(on);
      on.drain();
      continue;
    }
    on.make_room();
    identifier& of = *static_cast<identifier*>(ready.data.ptr);
    if (of.now == state::listening) {
      number = accept_one(of);
    } else {
      receive(of);
    }
  }
  on.settle();
  return number;
}

}  // namespace verbena::soft::cm
