// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/operation/legality.hpp>
#include <verbena/policy/transport.hpp>

namespace verbena::transport {

/// Unreliable connection: sends and writes in order, but not acknowledged, and lost without a word
/// where a packet is, or no receive is posted. A completion says that the message has left. Not on
/// iWARP, and not through RDMA CM.
struct uc {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_UC;
  static constexpr int to_init =
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  static constexpr int to_receive =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  static constexpr int to_send = IBV_QP_STATE | IBV_QP_SQ_PSN;
  static constexpr std::uint32_t receive_prefix = legality::rules_of(IBV_QPT_UC).prefix_bytes;
  static constexpr bool addressed = legality::rules_of(IBV_QPT_UC).addressed;

  static constexpr bool carries(operation of) noexcept { return legality::carries(IBV_QPT_UC, of); }
  static constexpr bool fences(operation of) noexcept { return legality::fences(IBV_QPT_UC, of); }
  static constexpr std::uint32_t max_message(const ibv_port_attr& port) noexcept {
    return port.max_msg_sz;
  }
};

static_assert(transport_policy<uc>);

}  // namespace verbena::transport
