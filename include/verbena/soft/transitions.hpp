// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>

#include <verbena/verbs/ibverbs.hpp>

namespace verbena::soft {

/// One legal transition of a queue pair: what must be given and what may be (ibv_modify_qp(3),
/// IBA 11.2.5.2).
struct transition {
  ibv_qp_state from;
  ibv_qp_state to;
  ibv_qp_type type;
  int needed;
  int allowed;
};

inline constexpr std::array transitions{
    transition{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    transition{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    transition{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    transition{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    transition{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    transition{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    transition{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC,
               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
               IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    transition{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC,
               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
               IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    transition{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    transition{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC,
               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                   IBV_QP_TIMEOUT,
               IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
                   IBV_QP_PATH_MIG_STATE},
    transition{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, IBV_QP_SQ_PSN,
               IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
    transition{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    transition{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0,
               IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
                   IBV_QP_MIN_RNR_TIMER},
    transition{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0,
               IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
    transition{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    transition{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    transition{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    transition{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    transition{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0,
               IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    transition{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    transition{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    transition{IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    transition{IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

/// 0 where a queue pair of this type may go from one state to the other with these attributes,
/// else EINVAL. RESET and ERR can be reached from everywhere with the state alone.
constexpr int check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to,
                               int mask) noexcept {
  const int given = mask & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
    return (given & ~IBV_QP_CUR_STATE) == 0 ? 0 : EINVAL;
  for (const transition& each : transitions) {
    if (each.type != type || each.from != from || each.to != to) continue;
    const bool complete = (given & each.needed) == each.needed;
    return complete && (given & ~(each.needed | each.allowed)) == 0 ? 0 : EINVAL;
  }
  return EINVAL;
}

}  // namespace verbena::soft
