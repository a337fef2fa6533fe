// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/connection/completed.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/verbs/status.hpp>

namespace verbena {

/// A request that failed, as a handler gets it: only what is valid of a failed completion
/// (ibv_poll_cq(3)), the operation being known from when it was posted.
class failed {
 public:
  failed(work_request_id id, verbena::status why, std::uint32_t vendor, bool first) noexcept
      : id_{id}, status_{why}, first_{first}, vendor_{vendor} {}

  operation what() const noexcept { return id_.what(); }
  verbena::status status() const noexcept { return status_; }
  std::uint32_t token() const noexcept { return id_.token(); }
  connection_id connection() const noexcept { return connection_id{id_.owner()}; }

  /// The adapter's own code, for its vendor.
  std::uint32_t vendor_error() const noexcept { return vendor_; }

  /// True exactly once in the life of a connection: for the request that broke it. Those after it
  /// are flushed, and nothing more can be posted.
  bool breaks_connection() const noexcept { return first_; }

 private:
  work_request_id id_;
  verbena::status status_;
  bool first_;
  std::uint32_t vendor_;
};

}  // namespace verbena
