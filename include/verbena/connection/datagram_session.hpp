// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/connection/endpoint_descriptor.hpp>
#include <verbena/connection/session.hpp>

namespace verbena {

/// What remains of the setup on transport::ud: how this end is reached, from which the way to a
/// peer is chosen. There is no peer that could be gone.
struct datagram_session : no_session {
  endpoint_descriptor self{};
};

}  // namespace verbena
