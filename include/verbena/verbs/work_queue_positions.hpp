// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__SANITIZE_THREAD__)
#define VERBENA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VERBENA_THREAD_SANITIZER 1
#endif
#endif

namespace verbena {

/// Positions of one work queue. They count up modulo 2^32; a wr_id carries the low 16 bits, which
/// is why no queue may be deeper than 2^15. One thread at a time posts and one polls; others may
/// read what is marked so.
struct work_queue_positions {
  static constexpr std::uint32_t depth_limit = 1U << 15;

  std::uint32_t posted = 0;
  std::uint32_t retired = 0;
  std::uint32_t capacity = 0;  ///< 0 once the queue pair has failed

  constexpr std::uint32_t outstanding() const noexcept { return read(posted) - read(retired); }
  constexpr bool has_room(std::uint32_t requests) const noexcept {
    return outstanding() + requests <= read(capacity);
  }
  /// Nothing more has room.
  constexpr void shut() noexcept { store(capacity, 0); }

  constexpr void post(std::uint32_t requests) noexcept { store(posted, posted + requests); }

  /// Retires everything up to `position` and returns how many that were; a position that is
  /// already retired retires none. Requests complete in order, unsignaled ones with a later one.
  constexpr std::uint32_t retire(std::uint16_t position) noexcept {
    const auto step = static_cast<std::uint16_t>(position + 1U - retired);
    if (step > outstanding()) return 0;
    store(retired, retired + step);
    return step;
  }

  /// Any thread: the position after the last one that was posted before this call.
  std::uint32_t end() const noexcept { return load(posted); }
  /// Any thread: whether all before `position` are retired, and nobody uses their memory.
  bool retired_before(std::uint32_t position) const noexcept {
    return static_cast<std::int32_t>(load(retired) - position) >= 0;
  }

 private:
  // Plain stores of one aligned word, which the compilers named in the README do not tear: atomic
  // ones cost instructions on the hot path (docs/decisions/0010). The sanitizer is shown atomics.
  static constexpr void store(std::uint32_t& word, std::uint32_t value) noexcept {
#if VERBENA_THREAD_SANITIZER
    if (!std::is_constant_evaluated()) return __atomic_store_n(&word, value, __ATOMIC_RELAXED);
#endif
    word = value;
  }
  static constexpr std::uint32_t read(const std::uint32_t& word) noexcept {
#if VERBENA_THREAD_SANITIZER
    if (!std::is_constant_evaluated()) return __atomic_load_n(&word, __ATOMIC_RELAXED);
#endif
    return word;
  }
  static std::uint32_t load(const std::uint32_t& word) noexcept {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  }
};

}  // namespace verbena
