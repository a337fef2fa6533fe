// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <verbena/soft/cm/event_channel.hpp>

/// Events into a channel and messages to the peer, with the faults that the knobs ask for.
namespace verbena::soft::cm {

/// Private data as it is received: with zeros up to what the message can carry, as on RoCE, or of
/// the length that was sent, as on iWARP.
inline void give_data(const context& here, event& to, const message& from) {
  const std::size_t length = here.knobs.cm_pad_data != 0 && here.knobs.iwarp == 0
                                 ? message::most(from.what)
                                 : std::size_t{from.length};
  std::copy_n(from.data.begin(), from.length, to.data.begin());
  to.native.param.conn.private_data = length == 0 ? nullptr : to.data.data();
  to.native.param.conn.private_data_len = static_cast<std::uint8_t>(length);
}

/// An event for an id, with the peer's message where there is one. Under the guard. After
/// make_room() of its channel, it takes no memory.
inline void deliver(identifier& to, rdma_cm_event_type what, int status = 0,
                    const message* said = nullptr) {
  event_channel& on = *to.on;
  knobs& knobs = to.here->knobs;
  on.make_room();
  auto made = on.take_blank();
  made->native.id = &to.native;
  made->native.event = what;
  made->native.status = status;
  made->counted = &to;
  if (said != nullptr) {
    rdma_conn_param& given = made->native.param.conn;
    give_data(*to.here, *made, *said);
    if (said->what != message::refusal) {
      // What the peer answers is what this end may ask, and the other way round.
      given.responder_resources = said->initiator_depth;
      given.initiator_depth = said->responder_resources;
      given.flow_control = said->flow_control;
      given.retry_count = said->retry_count;
      given.rnr_retry_count = said->rnr_retry_count;
      given.srq = said->shared_receives;
      given.qp_num = said->queue_pair;
    }
  }
  if (what == RDMA_CM_EVENT_CONNECT_REQUEST) {
    made->native.listen_id = &std::exchange(to.listener, nullptr)->native;
    made->counted = &identifier::of(made->native.listen_id);
  }
  const std::int64_t delay = std::int64_t{knobs.cm_delay_ms.load()} * 1'000'000;
  made->due = delay == 0 ? 0 : cm::now() + delay;
  if (!on.events.empty()) made->due = std::max(made->due, on.events.back()->due);
  if (what != RDMA_CM_EVENT_CONNECT_REQUEST) {
    if (knobs.cm_drop_event.is_nth()) return;
    if (knobs.cm_duplicate_event.is_nth()) {
      auto again = on.take_blank();
      *again = *made;
      if (again->native.param.conn.private_data != nullptr && said != nullptr)
        again->native.param.conn.private_data = again->data.data();
      on.events.push_back(std::move(again));
    }
  }
  on.events.push_back(std::move(made));
}

/// Lets the channel's descriptor wake for the id's socket; 0 or an errno.
inline int watch(identifier& of) noexcept {
  const int number = of.on->watch(of.socket, &of);
  of.watched = number == 0;
  return number;
}

inline void unwatch(identifier& of) noexcept {
  if (std::exchange(of.watched, false) && !of.here->fabric->is_copy())
    ::epoll_ctl(of.on->native.fd, EPOLL_CTL_DEL, of.socket, nullptr);
}

/// The id's connection is over: its socket goes, the peer sees the end.
inline void hang_up(identifier& of) {
  unwatch(of);
  if (of.socket >= 0) ::close(std::exchange(of.socket, -1));
  of.on->expect_by(of, 0);
  of.now = state::over;
}

/// False when the peer has gone.
inline bool send(const identifier& of, message what) noexcept {
  if (of.here->knobs.partitioned) return true;
  what.process = of.here->fabric->me();
  return ::send(of.socket, &what, sizeof what, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof what;
}

inline void refuse(const identifier& of, std::uint16_t why,
                   std::span<const std::byte> data = {}) noexcept {
  message what;
  what.what = message::refusal;
  what.why = why;
  what.carry(data);
  (void)send(of, what);
}

}  // namespace verbena::soft::cm
