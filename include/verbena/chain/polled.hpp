// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/chain/progress.hpp>

namespace verbena {

/// What a poll or a wait came upon: true when completions were handled, of which there were
/// count(). A poll that finds nothing is false without an error; a wait says why it ended.
class polled : public progress {
 public:
  using progress::progress;
  constexpr polled(progress value) noexcept : progress{value} {}

  constexpr explicit operator bool() const noexcept { return count() != 0; }
  constexpr bool timed_out() const noexcept { return failed_with(errc::timed_out); }
  constexpr bool stopped() const noexcept { return failed_with(errc::stopped); }
};

}  // namespace verbena
