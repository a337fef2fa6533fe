// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

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

  using base::bytes;
  using base::immediate;
  using base::immediate_or;
  using base::is_write;
  using base::size;

 private:
  connection_id from_;
};

}  // namespace verbena
