// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <verbena/operation/immediate.hpp>
#include <verbena/operation/pieces.hpp>
#include <verbena/operation/request.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// Which connection of a completion queue a completion belongs to; compare with connection::id().
enum class connection_id : std::uint32_t {};

/// The operation that a template such as verbena::write stands for.
template <template <class, class, class> class Operation>
inline constexpr operation operation_of = Operation<pieces<>, no_remote, no_options>::what;

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

  /// Bytes received or read; of a write with immediate, those that the peer wrote.
  std::uint32_t size() const noexcept
    requires(what == operation::receive || what == operation::read)
  {
    return entry_->byte_len;
  }

  /// The message, where its receive was posted with one piece of memory; empty otherwise, and for a
  /// write with immediate, whose data lies where the peer wrote it. The memory is the user's again.
  std::span<std::byte> bytes() const noexcept
    requires(what == operation::receive)
  {
    if (data_ == nullptr || is_write()) return {};
    return {data_, entry_->byte_len};
  }

  /// What the peer sent with its message or write, in host order; nothing where it sent none.
  std::optional<std::uint32_t> immediate() const noexcept
    requires(what == operation::receive)
  {
    if ((entry_->wc_flags & IBV_WC_WITH_IMM) == 0) return {};
    return swapped_immediate(entry_->imm_data);
  }

  /// The same, or `otherwise`: without the optional, which g++ 12 keeps in memory.
  std::uint32_t immediate_or(std::uint32_t otherwise) const noexcept
    requires(what == operation::receive)
  {
    const bool sent = (entry_->wc_flags & IBV_WC_WITH_IMM) != 0;
    return sent ? swapped_immediate(entry_->imm_data) : otherwise;
  }

  /// Whether it was a write with immediate instead of a message.
  bool is_write() const noexcept
    requires(what == operation::receive)
  {
    return entry_->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  }

  /// What the peer's object was before; the local memory holds the same, and is the user's again.
  std::uint64_t old_value() const noexcept
    requires(is_atomic(what))
  {
    std::uint64_t value = 0;
    std::memcpy(&value, data_, sizeof value);
    return value;
  }

 protected:
  /// For the views of completions that are more than this.
  const ibv_wc& native() const noexcept { return *entry_; }
  std::byte* data() const noexcept { return data_; }

 private:
  work_request_id id() const noexcept { return {entry_->wr_id}; }
  const ibv_wc* entry_;
  std::byte* data_;
  std::uint32_t retired_;
};

}  // namespace verbena
