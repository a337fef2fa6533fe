// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <verbena/connection/queue_pair_state.hpp>
#include <verbena/connection/queue_pair_table.hpp>
#include <verbena/memory/buffer.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/verbs/shared_receive_queue.hpp>

namespace verbena {

/// The receives of a shared receive queue, each of which has its place in memory and is posted to
/// it again and again. Receives of several queue pairs complete in any order: a place is free when
/// its own completion has been handled, whatever was posted before. Used by the thread that polls.
class receive_slots {
 public:
  using memory_type = buffer<std::byte, grants_of<sink>>;

  /// How receives are laid out: `bytes` each, `stride` apart; what is free is posted `batch` at a
  /// time.
  struct layout {
    std::uint32_t slots;
    std::uint32_t bytes;
    std::size_t stride;
    std::uint32_t batch;
  };

  receive_slots(verbs::shared_receive_queue queue, memory_type memory, const layout& as,
                std::uint32_t owner, std::uint32_t connections)
      : queue_pairs{connections},
        memory_{std::move(memory)},
        queue_{std::move(queue)},
        native_{queue_.native_handle()},
        layout_{as},
        work_(as.slots),
        pieces_(as.slots) {
    for (std::uint32_t i = 0; i < as.slots; ++i) {
      pieces_[i].addr = reinterpret_cast<std::uintptr_t>(memory_.data() + i * as.stride);
      pieces_[i].length = as.bytes;
      pieces_[i].lkey = static_cast<std::uint32_t>(memory_.view().key());
      work_[i].wr_id =
          work_request_id::make(operation::shared_receive, owner | work_request_id::apart, i, 0)
              .word;
      work_[i].sg_list = &pieces_[i];
      work_[i].num_sge = 1;
    }
  }
  receive_slots(const receive_slots&) = delete;
  receive_slots& operator=(const receive_slots&) = delete;
  ~receive_slots() = default;

  /// Posts all. Errors: errno of ibv_post_srq_recv.
  result<void> fill() {
    for (std::uint32_t i = 0; i < layout_.slots; ++i) chain(i);
    if (const int number = post(); number != 0) {
      return system_failure(number, "cannot post " + std::to_string(free_) + " of " +
                                        std::to_string(layout_.slots) +
                                        " receives to the shared receive queue");
    }
    return success();
  }

  [[gnu::always_inline]] std::byte* memory_at(std::uint32_t slot) const noexcept {
    return memory_.data() + slot * layout_.stride;
  }

  /// A slot has been read, or failed: it is posted again, together with others. Where that fails
  /// nothing more can be received, and every connection is broken.
  [[gnu::always_inline]] void put_back(std::uint32_t slot) noexcept {
    if (slot >= layout_.slots) return;
    chain(slot);
    if (free_ >= layout_.batch && post() != 0) [[unlikely]]
      queue_pairs.fail(status::fatal);
  }

  const layout& as() const noexcept { return layout_; }
  ibv_srq* native_handle() const noexcept { return native_; }

  queue_pair_table queue_pairs;  ///< that take from it

 private:
  /// What was free last is posted first: its memory is in the cache still.
  [[gnu::always_inline]] void chain(std::uint32_t slot) noexcept {
    work_[slot].next = first_;
    first_ = &work_[slot];
    ++free_;
  }

  /// Returns a positive errno, with what has not been taken still free.
  [[gnu::always_inline]] int post() noexcept {
    ibv_recv_wr* refused = nullptr;
    const int value = ibv_post_srq_recv(native_, first_, &refused);
    if (value != 0) [[unlikely]]
      return keep(refused, value);
    first_ = nullptr;
    free_ = 0;
    return 0;
  }
  [[gnu::cold, gnu::noinline]] int keep(ibv_recv_wr* refused, int value) noexcept {
    first_ = refused;
    free_ = 0;
    for (const ibv_recv_wr* left = refused; left != nullptr; left = left->next) ++free_;
    return verbs::refused_errno(value);
  }

  memory_type memory_;
  verbs::shared_receive_queue queue_;  // goes before the memory
  ibv_srq* native_;
  layout layout_;
  std::vector<ibv_recv_wr> work_;
  std::vector<ibv_sge> pieces_;
  ibv_recv_wr* first_ = nullptr;
  std::uint32_t free_ = 0;
};

}  // namespace verbena
