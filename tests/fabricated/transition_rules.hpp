// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

/// What ibv_modify_qp(3) asks of a transition.
struct transition_rule {
  int required;
  int optional;
};

/// Nothing where the transition does not exist. SQD and SQE are left out.
inline std::optional<transition_rule> rule_of(ibv_qp_type type, ibv_qp_state from,
                                              ibv_qp_state to) {
  const bool reliable = type == IBV_QPT_RC;
  const bool connected = reliable || type == IBV_QPT_UC;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return transition_rule{IBV_QP_STATE, 0};

  const int at_init =
      IBV_QP_PKEY_INDEX | IBV_QP_PORT | (connected ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) {
    return transition_rule{IBV_QP_STATE | at_init, 0};
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return transition_rule{0, IBV_QP_STATE | at_init};

  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    transition_rule rule{IBV_QP_STATE, IBV_QP_PKEY_INDEX};
    if (connected) {
      rule.required |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
      rule.optional |= IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH;
    } else {
      rule.optional |= IBV_QP_QKEY;
    }
    if (reliable) rule.required |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return rule;
  }

  const int in_service =
      IBV_QP_CUR_STATE |
      (connected ? IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE : IBV_QP_QKEY);
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    transition_rule rule{IBV_QP_STATE | IBV_QP_SQ_PSN, in_service};
    if (reliable) {
      rule.required |=
          IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
      rule.optional |= IBV_QP_MIN_RNR_TIMER;
    }
    return rule;
  }
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) {
    return transition_rule{0, IBV_QP_STATE | in_service | (reliable ? IBV_QP_MIN_RNR_TIMER : 0)};
  }
  return {};
}

}  // namespace fabricated
