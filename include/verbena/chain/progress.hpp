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
  constexpr explicit progress(std::uint32_t count) noexcept : count_{count} {}
  constexpr progress(std::uint32_t count, errc why) noexcept
      : count_{count}, reason_{-static_cast<std::int32_t>(why)} {}

  /// With the positive errno of a verbs call.
  static constexpr progress system(std::uint32_t count, int number) noexcept {
    progress value{count};
    value.reason_ = number;
    return value;
  }

  constexpr std::uint32_t count() const noexcept { return count_; }
  constexpr bool failed_with(errc why) const noexcept {
    return reason_ == -static_cast<std::int32_t>(why);
  }

  /// Empty where nothing went wrong.
  std::error_code error() const noexcept {
    if (reason_ < 0) return make_error_code(static_cast<errc>(-reason_));
    return {reason_, std::generic_category()};
  }

 protected:
  constexpr bool has_reason() const noexcept { return reason_ != 0; }

 private:
  std::uint32_t count_ = 0;
  std::int32_t reason_ = 0;  // 0 none, above an errno, below minus an errc
};

}  // namespace verbena
