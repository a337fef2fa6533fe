// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <limits>
#include <system_error>

#include <verbena/chain/progress.hpp>

namespace verbena {

/// What a poll or a wait came upon: true when completions were handled, of which there were
/// count(). A poll that finds nothing is false without an error; a wait says why it ended.
class polled : public progress {
 public:
  using progress::progress;
  constexpr polled(progress value) noexcept : progress{value} {}

  /// Something has come for another queue than the one asked: true, with a count of 0.
  static constexpr polled elsewhere() noexcept { return polled{0, no_error}; }

  constexpr explicit operator bool() const noexcept {
    return count() != 0 || failed_with(no_error);
  }
  std::error_code error() const noexcept {
    return failed_with(no_error) ? std::error_code{} : progress::error();
  }
  constexpr bool timed_out() const noexcept { return failed_with(errc::timed_out); }
  constexpr bool stopped() const noexcept { return failed_with(errc::stopped); }

 private:
  static constexpr errc no_error{std::numeric_limits<int>::max()};
};

}  // namespace verbena
