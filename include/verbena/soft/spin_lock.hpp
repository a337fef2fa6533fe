// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace verbena::soft {

/// Waits for another thread of this process, longer the longer it has lasted: that thread may have
/// to run on this core.
class pause {
 public:
  void operator()() noexcept {
    if (++times_ < spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (times_ < yields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }

 private:
  static constexpr std::uint32_t spins = 64;
  static constexpr std::uint32_t yields = 256;
  std::uint32_t times_ = 0;
};

/// A lock between threads of this process that costs one atomic exchange, and nothing to unlock.
class spin_lock {
 public:
  void lock() noexcept {
    pause wait;
    while (held_.exchange(true, std::memory_order_seq_cst)) {
      while (held_.load(std::memory_order_relaxed)) wait();
    }
  }
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_seq_cst); }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }
  bool is_held() const noexcept { return held_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace verbena::soft
