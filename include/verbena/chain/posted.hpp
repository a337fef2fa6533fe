// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/chain/progress.hpp>

namespace verbena {

/// What became of a post: true when every request entered the queue. Otherwise count() have, the
/// rest has not and may be posted again once the reason is gone; nothing is ever posted twice.
class [[nodiscard]] posted : public progress {
 public:
  using progress::progress;
  constexpr posted(progress value) noexcept : progress{value} {}

  constexpr explicit operator bool() const noexcept { return !has_reason(); }

  /// The queue was full, nothing is wrong: poll, then post the rest.
  constexpr bool would_block() const noexcept { return failed_with(errc::would_block); }
};

static_assert(sizeof(posted) == 8);

}  // namespace verbena
