// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace fabricated {

/// The calls that can be counted and told to fail.
enum class call : std::size_t {
  close_device,
  query_device,
  query_port,
  query_gid,
  alloc_pd,
  dealloc_pd,
  reg_mr,
  dereg_mr,
  create_comp_channel,
  destroy_comp_channel,
  create_cq,
  destroy_cq,
  get_cq_event,
  ack_cq_events,
  create_qp,
  modify_qp,
  query_qp,
  destroy_qp,
  create_qp_ex,
  alloc_td,
  dealloc_td,
  alloc_parent_domain,
  post_send,
  wr_complete,
  post_recv,
  poll_cq,
  req_notify_cq,
};

inline constexpr std::size_t call_count = static_cast<std::size_t>(call::req_notify_cq) + 1;

}  // namespace fabricated
