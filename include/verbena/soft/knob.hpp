// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>

namespace verbena::soft {

/// One number that a test sets on the software device. Any thread may set and read it.
class knob {
 public:
  explicit knob(std::uint32_t initial) noexcept : value_{initial} {}
  /// 0, and counted in `faults` as long as it is anything else.
  explicit knob(std::atomic<std::uint32_t>& faults) noexcept : faults_{&faults} {}
  knob(const knob&) = delete;

  std::uint32_t load() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator std::uint32_t() const noexcept { return load(); }

  knob& operator=(std::uint32_t value) noexcept {
    changed(value_.exchange(value), value);
    return *this;
  }
  knob& operator=(const knob&) = delete;

  /// Counts down: true for the call that gets it to 0, no matter which thread's.
  bool is_nth() noexcept {
    std::uint32_t left = load();
    while (left != 0) {
      if (!value_.compare_exchange_weak(left, left - 1)) continue;
      changed(left, left - 1);
      return left == 1;
    }
    return false;
  }

 private:
  void changed(std::uint32_t from, std::uint32_t to) noexcept {
    if (faults_ != nullptr && (from != 0) != (to != 0)) faults_->fetch_add(to != 0 ? 1U : ~0U);
  }

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t>* faults_ = nullptr;
};

}  // namespace verbena::soft
