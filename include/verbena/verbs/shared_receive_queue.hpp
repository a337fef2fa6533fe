// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/protection_domain.hpp>

namespace verbena::verbs {

/// Owner of a shared receive queue: receives that any of several queue pairs takes
/// (ibv_create_srq(3)). Move-only; keeps its protection domain. The queue pairs that use it must go
/// before it.
class shared_receive_queue {
 public:
  shared_receive_queue() = default;

  /// For at least `receives` of up to `pieces` pieces of memory; more of them may be granted.
  /// Errors: errc::not_supported where the device has none; the errno of ibv_create_srq.
  static result<shared_receive_queue> create(const protection_domain& domain,
                                             std::uint32_t receives, std::uint32_t pieces) {
    const verbs::device& on = domain.device();
    const control_table& calls = on.table();
    if (calls.create_srq == nullptr) {
      return error{errc::not_supported, "shared receive queues on " + on.name()};
    }
    ibv_srq_init_attr asked{};
    asked.attr.max_wr = receives;
    asked.attr.max_sge = pieces;
    errno = 0;
    ibv_srq* native = calls.create_srq(domain.native_handle(), &asked);
    BOOST_OUTCOME_TRY(on.checked(null_errno(native), [&] {
      return "cannot create a shared receive queue of " + std::to_string(receives) +
             " receives of " + std::to_string(pieces) + " pieces on " + on.name();
    }));
    shared_receive_queue made;
    made.state_ = std::make_shared<object<ibv_srq>>(
        native, calls, "shared receive queue",
        [](const control_table& table, ibv_srq* held) {
          return returned_errno(table.destroy_srq(held));
        },
        object<ibv_srq>::parents{domain.keep()});
    return made;
  }

  ibv_srq* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }

  /// Destroys now. Errors: EBUSY while a queue pair uses it; it then stays.
  result<void> close() { return close_shared(state_, "shared receive queue"); }

  shared_receive_queue(shared_receive_queue&&) noexcept = default;
  shared_receive_queue& operator=(shared_receive_queue&&) noexcept = default;
  shared_receive_queue(const shared_receive_queue&) = delete;
  shared_receive_queue& operator=(const shared_receive_queue&) = delete;

 private:
  std::shared_ptr<object<ibv_srq>> state_;
};

}  // namespace verbena::verbs
