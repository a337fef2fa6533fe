// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/protection_domain.hpp>
#include <verbena/verbs/thread_domain.hpp>

namespace verbena::verbs {

/// Owner of a queue pair. Move-only; keeps its domains and completion queue.
class queue_pair {
 public:
  queue_pair() = default;

  /// Creates one as `asked` says; `asked.cap` holds what was granted afterwards.
  /// `queues` keeps the completion queues named in `asked`. With `send_ops` (IBV_QP_EX_WITH_*) it
  /// is the qp_base of an ibv_qp_ex that builds these; EOPNOTSUPP where there is no such. Unless
  /// `thread` is empty, one thread at a time may use it.
  static result<queue_pair> create(const protection_domain& domain, ibv_qp_init_attr& asked,
                                   std::shared_ptr<const void> queues, std::uint64_t send_ops = 0,
                                   const thread_domain& thread = {}) {
    const control_table& calls = domain.device().table();
    const ibv_qp_cap wanted = asked.cap;
    ibv_pd* const in =
        thread.native_handle() != nullptr ? thread.native_handle() : domain.native_handle();
    errno = 0;
    ibv_qp* native = send_ops == 0 ? calls.create_qp(in, &asked)
                                   : create_extended(domain.device(), in, asked, send_ops);
    BOOST_OUTCOME_TRY(domain.device().checked(null_errno(native), [&] {
      return "cannot create a queue pair on " + domain.device().name() + " with " +
             std::to_string(wanted.max_send_wr) + " send and " +
             std::to_string(wanted.max_recv_wr) + " receive requests, " +
             std::to_string(wanted.max_send_sge) + " and " + std::to_string(wanted.max_recv_sge) +
             " pieces each, " + std::to_string(wanted.max_inline_data) + " bytes inline";
    }));
    queue_pair made;
    made.state_ = std::make_shared<object<ibv_qp>>(
        native, calls, "queue pair",
        [](const control_table& table, ibv_qp* held) {
          return returned_errno(table.destroy_qp(held));
        },
        object<ibv_qp>::parents{thread.keep(), std::move(queues), domain.keep()});
    return made;
  }

  /// One transition; all or nothing (ibv_modify_qp(3)). Errors: the errno, with `step`.
  result<void> modify(ibv_qp_attr attributes, int mask, const char* step) const {
    errno = 0;
    const int number =
        returned_errno(state_->table().modify_qp(state_->native(), &attributes, mask));
    return checked(number, [&] {
      return "cannot move queue pair " + std::to_string(state_->native()->qp_num) + " to " + step;
    });
  }

  /// To ERR: everything outstanding completes as flushed.
  result<void> fail() const {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    return modify(attributes, IBV_QP_STATE, "ERR");
  }

  ibv_qp* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }

  /// Destroys now; on failure it stays.
  result<void> close() { return close_shared(state_, "queue pair"); }

  queue_pair(queue_pair&&) noexcept = default;
  queue_pair& operator=(queue_pair&&) noexcept = default;
  queue_pair(const queue_pair&) = delete;
  queue_pair& operator=(const queue_pair&) = delete;

 private:
  /// Null and errno where it fails, as ibv_create_qp_ex(3).
  static ibv_qp* create_extended(const device& on, ibv_pd* in, ibv_qp_init_attr& asked,
                                 std::uint64_t send_ops) {
    const control_table& calls = on.table();
    ibv_qp* made = nullptr;
    if (calls.create_qp_ex != nullptr) {
      ibv_qp_init_attr_ex wanted{};
      wanted.qp_context = asked.qp_context;
      wanted.send_cq = asked.send_cq;
      wanted.recv_cq = asked.recv_cq;
      wanted.srq = asked.srq;
      wanted.cap = asked.cap;
      wanted.qp_type = asked.qp_type;
      wanted.sq_sig_all = asked.sq_sig_all;
      wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      wanted.pd = in;
      wanted.send_ops_flags = send_ops;
      made = calls.create_qp_ex(on.native_handle(), &wanted);
      if (made == nullptr) return nullptr;
      asked.cap = wanted.cap;
      // The hot path keeps one pointer for both.
      if (reinterpret_cast<ibv_qp*>(calls.to_qp_ex(made)) == made) return made;
      (void)calls.destroy_qp(made);
    }
    errno = EOPNOTSUPP;
    return nullptr;
  }

  std::shared_ptr<object<ibv_qp>> state_;
};

}  // namespace verbena::verbs
