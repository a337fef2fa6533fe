// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cassert>

namespace verbena::threading {

/// Locks nothing: with assertions it looks whether a lock would have been needed. Has its byte in
/// either build, so that both can be parts of one program.
class one_at_a_time {
 public:
  void lock() noexcept {
    assert(!inside_.exchange(true, std::memory_order_relaxed) &&
           "two threads post on one connection at once: name vb::threading::shared");
  }
  void unlock() noexcept { assert((inside_.store(false, std::memory_order_relaxed), true)); }

 private:
  [[maybe_unused]] std::atomic<bool> inside_ = false;
};

}  // namespace verbena::threading
