// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <vector>

#include <verbena/soft/cm/message.hpp>
#include <verbena/soft/objects.hpp>
#include <verbena/verbs/rdma_cma.hpp>

namespace verbena::soft::cm {

struct event_channel;

/// Where an id stands. The comment says what happens next.
enum class state {
  idle,
  bound,
  addressed,  ///< resolve_route
  routed,     ///< connect
  listening,
  half_open,   ///< passive: the peer has connected its socket; its request comes
  requested,   ///< passive: accept or reject
  connecting,  ///< active: the response comes
  answered,    ///< active: establish
  accepted,    ///< passive: the peer says that it is ready
  connected,
  leaving,  ///< has disconnected; the peer's goodbye comes
  left,     ///< the peer has disconnected; disconnect
  over,
};

/// An end of a connection, or a listener: what is behind an rdma_cm_id. The connection is its
/// socket: when a process dies, the kernel closes it, and the peer knows.
struct identifier {
  rdma_cm_id native{};
  context* here = nullptr;
  event_channel* on = nullptr;
  state now = state::idle;
  location from{};
  location to{};
  int socket = -1;
  bool watched = false;                ///< the channel's descriptor wakes for the socket
  std::int64_t deadline = 0;           ///< of the next state; 0 none
  std::uint32_t unacknowledged = 0;    ///< events got
  identifier* listener = nullptr;      ///< of one that is half open
  std::vector<identifier*> half_open;  ///< of a listener: whom the program does not know yet
  bool shares_port = false;
  bool one_family = false;
  std::uint8_t ack_timeout = 14;  ///< 67 ms

  std::uint32_t sequence = 0;
  std::uint32_t peer_sequence = 0;
  std::uint32_t queue_pair = 0;
  std::uint32_t peer_queue_pair = 0;
  std::uint8_t peer_mtu = 5;
  std::uint8_t responder_resources = 0;  ///< as this end sees them
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry_count = 7;

  static identifier& of(rdma_cm_id* native) noexcept {
    return *reinterpret_cast<identifier*>(native);
  }
};

}  // namespace verbena::soft::cm
