// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/operation/legality.hpp>
#include <verbena/policy/transport.hpp>

namespace verbena::transport {

/// Unreliable datagram: sends of one packet each, to any peer, not acknowledged. In a receive 40
/// bytes stand in front of the message, which hold the sender's GRH where there was one
/// (ibv_post_recv(3)). Not on iWARP.
struct ud {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_UD;
  static constexpr int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  static constexpr int to_receive = IBV_QP_STATE;
  static constexpr int to_send = IBV_QP_STATE | IBV_QP_SQ_PSN;
  static constexpr std::uint32_t receive_prefix = legality::rules_of(IBV_QPT_UD).prefix_bytes;
  static constexpr bool addressed = legality::rules_of(IBV_QPT_UD).addressed;

  static constexpr bool carries(operation of) noexcept { return legality::carries(IBV_QPT_UD, of); }
  static constexpr bool fences(operation of) noexcept { return legality::fences(IBV_QPT_UD, of); }
  static constexpr std::uint32_t max_message(const ibv_port_attr& port) noexcept {
    return 128U << static_cast<unsigned>(port.active_mtu);
  }
};

static_assert(transport_policy<ud>);

}  // namespace verbena::transport
