// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>

#include <verbena/verbs/result.hpp>

namespace verbena {

/// What remains of the setup while a connection lives. This one, of setup::descriptor, knows
/// nothing of the peer; that of setup::cm learns when the peer is gone.
struct no_session {
  /// How often a busy-polling wait looks at it.
  static constexpr std::chrono::hours every{24};

  /// Readable when there is something to look at; -1 for never.
  int descriptor() const noexcept { return -1; }
  /// Takes what has happened; never blocks. True once the peer has closed or died.
  bool peer_gone() noexcept { return false; }
  /// Tells the peer that this end closes.
  result<void> disconnect() { return success(); }
};

}  // namespace verbena
