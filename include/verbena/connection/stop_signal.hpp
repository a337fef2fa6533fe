// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <verbena/verbs/result.hpp>

namespace verbena {

/// A descriptor that is readable from stop() until resume(), for waits to watch. Move-only; stop()
/// from any thread.
class stop_signal {
 public:
  stop_signal() = default;  ///< stops nothing

  static result<stop_signal> create() {
    stop_signal made;
    made.descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (made.descriptor_ < 0) return system_failure(errno, "cannot make a stop signal");
    return made;
  }

  void stop() const noexcept { ::eventfd_write(descriptor_, 1); }
  void resume() const noexcept {
    eventfd_t drained = 0;
    ::eventfd_read(descriptor_, &drained);
  }
  int descriptor() const noexcept { return descriptor_; }

  stop_signal(stop_signal&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
  stop_signal& operator=(stop_signal&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~stop_signal() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_ = -1;
};

}  // namespace verbena
