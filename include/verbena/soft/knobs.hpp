// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>

namespace verbena::soft {

/// Faults and limits that a test brings about, per opened device. All are deterministic. Set them
/// before the objects they concern are made, or between calls; they are read with each call.
struct knobs {
  std::atomic<std::uint32_t> max_qp_wr{16384};
  std::atomic<std::uint32_t> max_sge{16};
  std::atomic<std::uint32_t> max_inline{256};
  std::atomic<std::uint32_t> max_reads{16};
  std::atomic<std::uint32_t> max_message{1U << 30};
  std::atomic<std::uint32_t> mtu{5};  ///< an ibv_mtu code
  std::atomic<bool> iwarp{false};
  std::atomic<bool> negative_errno{false};  ///< posts fail with -errno, as rxe's and siw's do
  std::atomic<bool> poison_errors{false};   ///< undefined fields of error completions hold garbage
  std::atomic<std::uint64_t> drop_message{0};  ///< the n-th message from now on is lost; 0 none
  std::atomic<bool> hold_completions{false};   ///< completions stay in the queue until this is off
  std::atomic<bool> partitioned{false};        ///< nothing reaches other queue pairs

  // RDMA CM.
  std::atomic<std::uint32_t> cm_timeout_ms{20'000};  ///< for a peer's answer; then UNREACHABLE
  std::atomic<std::uint32_t> cm_delay_ms{0};         ///< each event comes so much later, in order
  std::atomic<std::uint64_t> cm_drop_event{0};       ///< the n-th event from now on is lost, and
  std::atomic<std::uint64_t> cm_duplicate_event{0};  ///< comes twice; requests are not counted
  std::atomic<std::uint64_t> cm_drop_request{0};     ///< a listener ignores the n-th request
  std::atomic<std::uint32_t> cm_refuse{0};  ///< a listener refuses with this reason, such as 10
  std::atomic<bool> cm_pad_data{true};      ///< private data to the maximum, as on RoCE
};

}  // namespace verbena::soft
