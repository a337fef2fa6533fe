// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <verbena/soft/cm/attributes.hpp>
#include <verbena/soft/queue_pair_control.hpp>

/// On iWARP it is the CM that moves queue pairs. All of it under the guard.
namespace verbena::soft::cm {

/// This process's queue pair of a connection; null when it is no more.
inline queue_pair* own_queue_pair(const identifier& of) noexcept {
  queue_pair* const found =
      of.here->queue_pairs[of.queue_pair % queue_pair_limit].load(std::memory_order_acquire);
  return found != nullptr && found->native.qp_base.qp_num == of.queue_pair ? found : nullptr;
}

/// From INIT to RTS, to the peer that the id knows; 0 or an errno.
inline int connect_queue_pair(identifier& of) {
  queue_pair* const own = own_queue_pair(of);
  if (own == nullptr) return EINVAL;
  for (const ibv_qp_state next : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr with{};
    with.qp_state = next;
    int mask = 0;
    if (const int number = find_attributes(of, with, mask); number != 0) return number;
    if (const int number = control::move_qp(&own->native.qp_base, &with, mask); number != 0)
      return number;
  }
  return 0;
}

/// The queue pair fails with the connection that it is.
inline void fail_queue_pair(const identifier& of) {
  queue_pair* const own = own_queue_pair(of);
  if (own == nullptr) return;
  ibv_qp_attr with{};
  with.qp_state = IBV_QPS_ERR;
  (void)control::move_qp(&own->native.qp_base, &with, IBV_QP_STATE);
}

}  // namespace verbena::soft::cm
