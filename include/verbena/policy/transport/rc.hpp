// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/operation/legality.hpp>
#include <verbena/policy/transport.hpp>

namespace verbena::transport {

/// Reliable connection: every operation, in order, acknowledged. The only transport of iWARP.
struct rc {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_RC;
  static constexpr int to_init =
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  static constexpr int to_receive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER;
  static constexpr int to_send = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                                 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
  static constexpr std::uint32_t receive_prefix = legality::rules_of(IBV_QPT_RC).prefix_bytes;
  static constexpr bool addressed = legality::rules_of(IBV_QPT_RC).addressed;

  static constexpr bool carries(operation of) noexcept { return legality::carries(IBV_QPT_RC, of); }
  static constexpr bool fences(operation of) noexcept { return legality::fences(IBV_QPT_RC, of); }
  static constexpr std::uint32_t max_message(const ibv_port_attr& port) noexcept {
    return port.max_msg_sz;
  }
};

static_assert(transport_policy<rc>);

}  // namespace verbena::transport
