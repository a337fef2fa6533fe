// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <verbena/verbs/device.hpp>
#include <verbena/verbs/nonblocking.hpp>

namespace verbena::verbs {

/// Owner of an RDMA CM event channel, whose descriptor becomes readable when an id on it has an
/// event. Non-blocking (rdma_create_event_channel(3)). Move-only; ids on it keep it.
class cm_event_channel {
 public:
  cm_event_channel() = default;

  /// Errors: errc::not_supported where the device has no RDMA CM; errno of the call.
  static result<cm_event_channel> create(const device& on) {
    BOOST_OUTCOME_TRY(on.usable("using RDMA CM on a device"));
    const cm_table* calls = on.table().cm;
    if (calls == nullptr) return error{errc::not_supported, "RDMA CM on " + on.name()};
    errno = 0;
    rdma_event_channel* native = calls->create_event_channel(on.native_handle());
    BOOST_OUTCOME_TRY(checked(null_errno(native), [&] {
      return "cannot create an event channel of RDMA CM for " + on.name();
    }));
    cm_event_channel made;
    made.state_ = std::make_shared<object<rdma_event_channel>>(
        native, on.table(), "event channel",
        [](const control_table& table, rdma_event_channel* held) {
          table.cm->destroy_event_channel(held);
          return 0;
        },
        object<rdma_event_channel>::parents{on.keep()});
    BOOST_OUTCOME_TRY(make_nonblocking(native->fd, "event channel of RDMA CM"));
    return made;
  }

  /// For poll() or epoll; -1 when empty.
  int descriptor() const noexcept { return state_ ? state_->native()->fd : -1; }
  rdma_event_channel* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }
  const control_table& table() const noexcept { return state_->table(); }

  cm_event_channel share() const noexcept {
    cm_event_channel other;
    other.state_ = state_;
    return other;
  }

  /// Destroys now. Errors: EBUSY while an id uses it; it then stays.
  result<void> close() { return close_shared(state_, "event channel"); }

  cm_event_channel(cm_event_channel&&) noexcept = default;
  cm_event_channel& operator=(cm_event_channel&&) noexcept = default;
  cm_event_channel(const cm_event_channel&) = delete;
  cm_event_channel& operator=(const cm_event_channel&) = delete;

 private:
  std::shared_ptr<object<rdma_event_channel>> state_;
};

}  // namespace verbena::verbs
