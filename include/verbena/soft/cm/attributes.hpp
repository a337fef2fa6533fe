// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include <verbena/soft/cm/ids.hpp>

namespace verbena::soft::cm {

/// The address of this device: RoCE v2 and of IPv4 where there is such an entry.
inline ibv_gid_entry choose_gid(ibv_context* on) noexcept {
  ibv_port_attr port{};
  ibv_gid_entry best{};
  int best_rank = -1;
  if (control::query_port(on, 1, &port) != 0) return best;
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid_entry each{};
    if (control::query_gid(on, 1, static_cast<std::uint32_t>(index), &each) != 0 ||
        (each.gid.global.subnet_prefix | each.gid.global.interface_id) == 0)
      continue;
    const bool is_ipv4 = each.gid.global.subnet_prefix == 0 && each.gid.raw[10] == 0xff;
    const int rank = (each.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (is_ipv4 ? 1 : 0);
    if (rank > best_rank) best = each;
    best_rank = std::max(rank, best_rank);
  }
  return best;
}

inline std::uint8_t active_mtu(ibv_context* on) noexcept {
  ibv_port_attr port{};
  (void)control::query_port(on, 1, &port);
  return static_cast<std::uint8_t>(port.active_mtu);
}

/// What the queue pair needs for `into.qp_state`, as the kernel's CM fills it: 0, or EINVAL for
/// what is not known yet. Under the guard.
inline int find_attributes(identifier& of, ibv_qp_attr& into, int& mask) {
  ibv_context* const on = of.native.verbs;
  if (on == nullptr || of.now == state::over) return EINVAL;
  const ibv_qp_state next = into.qp_state;
  const bool knows_peer = of.now == state::requested || of.now == state::answered ||
                          of.now == state::accepted || of.now == state::connected;
  if (next == IBV_QPS_INIT) {
    mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    into.pkey_index = 0;
    into.port_num = 1;
    into.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return 0;
  }
  if (!knows_peer) return EINVAL;
  if (next == IBV_QPS_RTR) {
    const ibv_gid_entry mine = choose_gid(on);
    mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    into.ah_attr = {};
    into.ah_attr.is_global = 1;
    into.ah_attr.port_num = 1;
    into.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(mine.gid_index);
    into.ah_attr.grh.dgid = mine.gid;  // both ends are on this host
    into.ah_attr.grh.hop_limit = 64;
    into.path_mtu = static_cast<ibv_mtu>(std::min(active_mtu(on), of.peer_mtu));
    into.dest_qp_num = of.peer_queue_pair;
    into.rq_psn = of.peer_sequence;
    into.max_dest_rd_atomic = of.responder_resources;
    into.min_rnr_timer = of.here->knobs.iwarp != 0 ? 1 : 0;  // the program can not set it there
    return 0;
  }
  if (next != IBV_QPS_RTS) return EINVAL;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC;
  into.sq_psn = of.sequence;
  into.timeout = of.ack_timeout;
  into.retry_cnt = of.retry_count;
  into.rnr_retry = of.rnr_retry_count;
  into.max_rd_atomic = of.initiator_depth;
  return 0;
}

/// As rdma_init_qp_attr. Errors: EINVAL.
inline int init_qp_attr(rdma_cm_id* native, ibv_qp_attr* into, int* mask) {
  const std::scoped_lock held{guard};
  const int number = find_attributes(identifier::of(native), *into, *mask);
  return number == 0 ? 0 : minus_one(number);
}

}  // namespace verbena::soft::cm
