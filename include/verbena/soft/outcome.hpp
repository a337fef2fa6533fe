// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <span>

#include <verbena/soft/cause.hpp>
#include <verbena/soft/memory.hpp>
#include <verbena/soft/wake.hpp>

namespace verbena::soft {

/// How carrying out a request ended.
struct outcome {
  enum kind { done, retry, not_ready } what = done;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t bytes = 0;
  cause why = cause::unsaid;
};

/// A request on its way: whose it is, whom it has found, and the local memory it is about.
struct errand {
  context& here;
  queue_pair& from;
  queue_pair_entry& to;
  std::uint32_t owner;  ///< of `to`
  std::span<const local_piece> local;
  std::uint64_t length;

  bool is_reliable() const noexcept { return from.type == IBV_QPT_RC; }

  /// Nothing answers: a reliable queue pair tries again.
  outcome silence() const noexcept {
    return is_reliable() ? outcome{outcome::retry, IBV_WC_SUCCESS, 0} : outcome{};
  }

  outcome failed_to_reach(reached how) const noexcept {
    return how == reached::gone ? silence() : refused(IBV_WC_REM_OP_ERR, cause_of(how));
  }

  /// The peer's queue pair fails with this one; unreliable ones drop what they can not take.
  [[gnu::cold, gnu::noinline]] outcome refused(ibv_wc_status status,
                                               cause why = cause::unsaid) const noexcept {
    if (!is_reliable()) return {};
    std::uint32_t state = to.state.load();
    while ((state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD) &&
           !to.state.compare_exchange_weak(state, IBV_QPS_ERR)) {
    }
    to.trouble.store(status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR + 1U
                                                     : IBV_EVENT_QP_REQ_ERR + 1U);
    wake(here, to.owner.load(), async_number);
    const std::uint32_t queue = to.completion_queue.load();
    if (queue < completion_queue_limit) {
      completion_queue_entry& entry = here.fabric->shared().completion_queues[queue];
      entry.look.store(1, std::memory_order_release);
      fire(here, entry, true);
    }
    return {outcome::done, status, 0, why};
  }
};

}  // namespace verbena::soft
