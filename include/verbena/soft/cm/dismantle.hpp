// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include <verbena/soft/cm/deliver.hpp>
#include <verbena/soft/cm/port.hpp>

/// Making and ending ids. All of it under the guard.
namespace verbena::soft::cm {

inline identifier& add_identifier(event_channel& on, void* own, rdma_port_space space) {
  auto made = std::make_unique<identifier>();
  made->here = on.here;
  made->on = &on;
  made->native.channel = &on.native;
  made->native.context = own;
  made->native.ps = space;
  made->native.qp_type = IBV_QPT_RC;
  on.ids.push_back(made.get());
  return *made.release();
}

/// The id has an address of this host, and so its device.
inline void bind_to_device(identifier& of) noexcept {
  of.native.verbs = &of.here->native;
  of.native.port_num = 1;
}

inline void dismantle(identifier& of);

/// Takes the events of an id, those of others that nobody but they know of with them.
inline void drop_events(identifier& of) {
  auto& events = of.on->events;
  for (std::size_t i = 0; i < events.size();) {
    if (events[i]->native.id != &of.native && events[i]->counted != &of) {
      ++i;
      continue;
    }
    const auto taken = std::move(events[i]);
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
    if (taken->native.event == RDMA_CM_EVENT_CONNECT_REQUEST && taken->native.id != &of.native)
      dismantle(identifier::of(taken->native.id));
    i = 0;
  }
}

/// Ends what the id is doing and tells the peer; no event of it waits any more or will come.
inline void stop(identifier& of) {
  switch (of.here->fabric->is_copy() ? state::over : of.now) {
    case state::connecting: refuse(of, timed_out); break;
    case state::requested:
    case state::accepted:
    case state::answered: refuse(of, consumer); break;
    case state::listening:
      for (int peer = 0; (peer = ::accept4(of.socket, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        message what;
        what.what = message::refusal;
        what.why = consumer;
        (void)::send(peer, &what, sizeof what, MSG_DONTWAIT | MSG_NOSIGNAL);
        ::close(peer);
      }
      break;
    default: break;
  }
  hang_up(of);
  drop_events(of);
  while (!of.half_open.empty()) dismantle(*of.half_open.back());
}

/// Frees an id that has stopped.
inline void forget(identifier& of) {
  if (of.listener != nullptr) std::erase(of.listener->half_open, &of);
  std::erase(of.on->ids, &of);
  delete &of;
}

/// Both, where the program has none of its events.
inline void dismantle(identifier& of) {
  stop(of);
  forget(of);
}

}  // namespace verbena::soft::cm
