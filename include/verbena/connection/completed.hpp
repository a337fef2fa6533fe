// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <verbena/operation/pieces.hpp>
#include <verbena/operation/request.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// Which connection of a completion queue a completion belongs to; compare with connection::id().
enum class connection_id : std::uint32_t {};

/// The operation that a template such as verbena::write stands for.
template <template <class, class, class> class Operation>
inline constexpr operation operation_of = Operation<pieces<>, no_remote, signal_by_policy>::what;

/// A request that succeeded, as a handler gets it. Refers to the completion being dispatched: use
/// it inside the handler only.
template <template <class, class, class> class Operation>
class completed {
 public:
  static constexpr operation what = operation_of<Operation>;

  completed(const ibv_wc& entry, std::byte* data, std::uint32_t retired) noexcept
      : entry_{&entry}, data_{data}, retired_{retired} {}

  /// What the request was posted with; 0 if nothing.
  std::uint32_t token() const noexcept { return id().token(); }
  connection_id connection() const noexcept { return connection_id{id().owner()}; }

  /// How many requests of the queue this retires: itself and the unsignaled ones before it.
  std::uint32_t retired() const noexcept { return retired_; }

  /// Bytes received or read.
  std::uint32_t size() const noexcept
    requires(what == operation::receive || what == operation::read)
  {
    return entry_->byte_len;
  }

  /// The message, where its receive was posted with one piece of memory; empty otherwise. The
  /// memory is the user's again.
  std::span<std::byte> bytes() const noexcept
    requires(what == operation::receive)
  {
    if (data_ == nullptr) return {};
    return {data_, entry_->byte_len};
  }

 private:
  work_request_id id() const noexcept { return {entry_->wr_id}; }
  const ibv_wc* entry_;
  std::byte* data_;
  std::uint32_t retired_;
};

}  // namespace verbena
