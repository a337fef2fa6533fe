// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/operation/legality.hpp>
#include <verbena/operation/operation.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena::posting {

/// The IBV_QP_EX_WITH_* flag of an operation, 0 for a receive.
constexpr std::uint64_t send_op(operation of) noexcept {
  switch (of) {
    case operation::send: return IBV_QP_EX_WITH_SEND;
    case operation::send_with_immediate: return IBV_QP_EX_WITH_SEND_WITH_IMM;
    case operation::read: return IBV_QP_EX_WITH_RDMA_READ;
    case operation::write: return IBV_QP_EX_WITH_RDMA_WRITE;
    case operation::write_with_immediate: return IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    case operation::compare_and_swap: return IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    case operation::fetch_and_add: return IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    default: return 0;
  }
}

/// The flags of all operations that `Chosen` says true of.
template <class Chosen>
constexpr std::uint64_t send_ops(Chosen&& chosen) noexcept {
  std::uint64_t all = 0;
  for (const legality::operation_rules& each : legality::operations) {
    if (chosen(each.what)) all |= send_op(each.what);
  }
  return all;
}

/// What a queue pair of a transport can be asked to build.
template <class Transport>
inline constexpr std::uint64_t send_ops_of =
    send_ops([](operation of) { return Transport::carries(of); });

/// What devices may lack of it.
inline constexpr std::uint64_t immediate_ops = send_ops(has_immediate);
inline constexpr std::uint64_t atomic_ops = send_ops(is_atomic);

}  // namespace verbena::posting
