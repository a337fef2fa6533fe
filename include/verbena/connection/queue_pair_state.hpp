// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <verbena/verbs/ibverbs.hpp>
#include <verbena/verbs/status.hpp>
#include <verbena/verbs/work_queue_positions.hpp>

namespace verbena {

/// What a device may lack, a set; asked before a request is posted that needs it.
enum class feature : std::uint8_t {
  none = 0,
  immediates = 1,
  atomics = 2,
  beyond_iwarp = 4,  ///< receives without memory, reads with a fence
};
constexpr feature operator|(feature left, feature right) noexcept {
  return static_cast<feature>(static_cast<unsigned>(left) | static_cast<unsigned>(right));
}

class receive_slots;

/// All that post and poll touch of a queue pair: one cache line in the table of its completion
/// queue, where it stays while the connection object moves. A ring has a place there too.
struct alignas(64) queue_pair_state {
  union {
    ibv_qp* queue_pair = nullptr;
    receive_slots* slots;  ///< of a ring, which has nothing else here but its owner
  };
  /// Where the only piece of a request lies: the receives by position, behind them the results of
  /// atomics by theirs, where the connection can have any.
  std::byte** memory_at = nullptr;
  work_queue_positions sends{};
  work_queue_positions receives{};
  std::uint32_t owner = 0;  ///< place in the table, generation above it
  std::uint32_t domain = 0;
  std::uint32_t max_message = 0;  ///< bytes
  std::uint16_t memory_mask = 0;  ///< of positions, within each half of memory_at
  std::uint16_t unsignaled = 0;   ///< sends since the last signaled one
  std::uint16_t signal_window = 1;
  status failure : 5 = status::success;  ///< of the request that failed first
  feature lacking : 3 = feature::none;   ///< of the device
  std::uint8_t send_pieces = 1;          ///< of local memory, in one send or write
  std::uint8_t receive_pieces = 1;
  std::uint8_t read_pieces = 0;    ///< iWARP: one; none where the peers agreed on no reads
  std::uint16_t inline_limit = 0;  ///< bytes

  constexpr bool lacks(feature one) const noexcept {
    return (static_cast<unsigned>(lacking) & static_cast<unsigned>(one)) != 0;
  }
  [[gnu::always_inline]] std::byte*& receive_at(std::uint32_t position) const noexcept {
    return memory_at[position & memory_mask];
  }
  [[gnu::always_inline]] std::byte*& result_at(std::uint32_t position) const noexcept {
    return (memory_at + memory_mask + 1)[position & memory_mask];
  }

  /// A part of a request has failed first: the request tells of it when it fails itself. As long
  /// no message is short enough, by which this is known.
  constexpr void fail_part(status why) noexcept {
    if (failure == status::success) {
      failure = why;
      max_message = 0;
    }
    sends.shut();
  }
  constexpr bool untold() const noexcept { return broken() && max_message == 0; }

  constexpr bool broken() const noexcept { return failure != status::success; }

  /// After the first failure nothing more may be posted: the room is gone, so the check that
  /// finds a full queue finds this too.
  constexpr void fail(status why) noexcept {
    if (failure == status::success) failure = why;
    if (max_message == 0) max_message = 1;
    sends.shut();
    receives.shut();
  }
};

static_assert(sizeof(queue_pair_state) == 64);

/// What a connection that has been closed or moved from posts to: broken, and without room.
inline constinit queue_pair_state closed_queue_pair{.queue_pair = nullptr,
                                                    .failure = status::flushed};

/// A connection's pointer to its state, which closed_queue_pair takes the place of.
class state_pointer {
 public:
  explicit state_pointer(queue_pair_state& of) noexcept : state_{&of} {}
  state_pointer(state_pointer&& other) noexcept
      : state_{std::exchange(other.state_, &closed_queue_pair)} {}
  state_pointer& operator=(state_pointer&& other) noexcept {
    state_ = std::exchange(other.state_, &closed_queue_pair);
    return *this;
  }
  ~state_pointer() = default;

  void close() noexcept { state_ = &closed_queue_pair; }
  queue_pair_state& operator*() const noexcept { return *state_; }
  queue_pair_state* operator->() const noexcept { return state_; }

 private:
  queue_pair_state* state_;
};

}  // namespace verbena
