// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/device.hpp>
#include <verbena/verbs/nonblocking.hpp>

namespace verbena::verbs {

/// Owner of a completion channel, whose descriptor becomes readable when an armed queue gets a
/// completion. Non-blocking (ibv_get_cq_event(3)). Move-only; queues on it keep it.
class completion_channel {
 public:
  completion_channel() = default;

  static result<completion_channel> create(const device& on) {
    BOOST_OUTCOME_TRY(on.usable("making a completion channel on a device"));
    errno = 0;
    ibv_comp_channel* native = on.table().create_comp_channel(on.native_handle());
    BOOST_OUTCOME_TRY(checked(
        null_errno(native), [&] { return "cannot create a completion channel on " + on.name(); }));
    completion_channel made;
    made.state_ = std::make_shared<object<ibv_comp_channel>>(
        native, on.table(), "completion channel",
        [](const control_table& table, ibv_comp_channel* held) {
          return returned_errno(table.destroy_comp_channel(held));
        },
        object<ibv_comp_channel>::parents{on.keep()});
    BOOST_OUTCOME_TRY(make_nonblocking(native->fd, "completion channel"));
    return made;
  }

  ibv_comp_channel* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }
  std::shared_ptr<const void> keep() const noexcept { return state_; }

  completion_channel share() const noexcept {
    completion_channel other;
    other.state_ = state_;
    return other;
  }

  /// Destroys now. Errors: EBUSY while a queue uses it; it then stays.
  result<void> close() { return close_shared(state_, "completion channel"); }

  completion_channel(completion_channel&&) noexcept = default;
  completion_channel& operator=(completion_channel&&) noexcept = default;
  completion_channel(const completion_channel&) = delete;
  completion_channel& operator=(const completion_channel&) = delete;

 private:
  std::shared_ptr<object<ibv_comp_channel>> state_;
};

}  // namespace verbena::verbs
