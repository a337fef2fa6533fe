// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <system_error>

#include <verbena/verbs/errc.hpp>

namespace verbena {

/// How far a call on the hot path came, and why not further: a count and a reason in one register.
class progress {
 public:
  constexpr progress() noexcept = default;
  constexpr explicit progress(std::uint32_t count) noexcept : word_{count} {}
  constexpr progress(std::uint32_t count, errc why) noexcept
      : progress{count, -static_cast<std::int32_t>(why)} {}

  /// With the positive errno of a verbs call.
  static constexpr progress system(std::uint32_t count, int number) noexcept {
    return {count, std::int32_t{number}};
  }

  constexpr std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(word_); }
  constexpr bool failed_with(errc why) const noexcept {
    return reason() == -static_cast<std::int32_t>(why);
  }

  /// The same reason for another count.
  constexpr progress with_count(std::uint32_t count) const noexcept { return {count, reason()}; }

  /// Empty where nothing went wrong.
  std::error_code error() const noexcept {
    if (reason() < 0) return make_error_code(static_cast<errc>(-reason()));
    return {reason(), std::generic_category()};
  }

 protected:
  constexpr bool has_reason() const noexcept { return reason() != 0; }

 private:
  constexpr progress(std::uint32_t count, std::int32_t reason) noexcept
      : word_{(std::uint64_t{static_cast<std::uint32_t>(reason)} << 32) | count} {}

  /// 0 none, above an errno, below minus an errc.
  constexpr std::int32_t reason() const noexcept { return static_cast<std::int32_t>(word_ >> 32); }

  // One word, the count below: as two members g++ puts it together on every way out of a post.
  std::uint64_t word_ = 0;
};

}  // namespace verbena
