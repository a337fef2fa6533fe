// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <span>

#include <verbena/connection/completed.hpp>
#include <verbena/operation/receive.hpp>

namespace verbena {

/// A message that has come to a receive_ring, as a handler gets it. Refers to the completion being
/// dispatched, and to a place in the ring that is posted again after the handler: use it, and its
/// bytes, inside the handler only.
class message : private completed<receive> {
  using base = completed<receive>;

 public:
  message(const ibv_wc& entry, std::byte* data, connection_id from) noexcept
      : base{entry, data, 1}, from_{from} {}

  /// Whose peer has sent it; compare with connection::id().
  connection_id connection() const noexcept { return from_; }

  /// The message; of a write with immediate empty, as its data lies where the peer wrote it.
  std::span<std::byte> bytes() const noexcept {
    if (is_write()) return {};
    return {data(), size()};
  }

  using base::immediate;
  using base::immediate_or;
  using base::is_write;
  using base::size;

 private:
  connection_id from_;
};

}  // namespace verbena
