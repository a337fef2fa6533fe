// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>

#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/device.hpp>

namespace verbena::verbs {

/// Owner of a completion channel, whose descriptor becomes readable when an armed queue gets a
/// completion. Non-blocking (ibv_get_cq_event(3)). Move-only; queues on it keep it.
class completion_channel {
 public:
  completion_channel() = default;

  static result<completion_channel> create(const device& on) {
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
    const int flags = ::fcntl(native->fd, F_GETFL);
    if (flags < 0 || ::fcntl(native->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
      return system_failure(errno, "cannot make the completion channel non-blocking");
    }
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

 private:
  std::shared_ptr<object<ibv_comp_channel>> state_;
};

}  // namespace verbena::verbs
