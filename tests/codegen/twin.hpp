// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <verbena/verbs/ibverbs.hpp>

/// Hand-written verbs that keep the same books as verbena's policies: what a careful C programmer
/// writes. Template parameters stand for the constants that programmer would type in.
namespace twin {

enum operation : std::uint64_t {
  receive = 0,
  send = 1,
  read = 2,
  write = 3,
  send_with_immediate = 4,
  write_with_immediate = 5,
  compare_and_swap = 6,
  fetch_and_add = 7,
  shared_receive = 13
};

struct positions {
  std::uint32_t posted, retired, capacity;
};

struct ring;

struct alignas(64) queue {
  union {
    ibv_qp* qp;
    struct ring* ring;  ///< of what stands for one
  };
  void** memory_at;
  positions sends;
  positions receives;
  std::uint32_t owner;
  std::uint32_t domain;
  std::uint32_t max_message;
  std::uint16_t memory_mask;
  std::uint16_t unsignaled;
  std::uint16_t signal_window;
  std::uint8_t failure : 5;
  std::uint8_t lacking : 3;
  std::uint8_t send_pieces;
  std::uint8_t receive_pieces;
  std::uint8_t read_pieces;
  std::uint16_t inline_limit;
};

struct local {
  void* data;
  std::size_t size;
  std::uint32_t key;
  std::uint32_t domain;
};

struct remote {
  std::uint64_t address;
  std::size_t size;
  std::uint32_t key;
};

/// The numbers of an operation: an immediate, or what an atomic works with.
struct operands {
  std::uint64_t first, second;
};

struct outcome {
  std::uint32_t count;
  std::int32_t reason;
};

#define TWIN_INLINE [[gnu::always_inline]] static inline
#define TWIN_COLD [[gnu::cold, gnu::noinline]] inline

TWIN_INLINE std::uint64_t pack(const queue* q, operation what, std::uint32_t position,
                               std::uint32_t token) {
  return (static_cast<std::uint64_t>(token) << 40) | (what << 36) |
         (static_cast<std::uint64_t>(q->owner) << 16) | (position & 0xffff);
}

TWIN_INLINE std::uint32_t retire(positions* p, std::uint16_t position) {
  const auto step = static_cast<std::uint16_t>(position + 1U - p->retired);
  if (step > p->posted - p->retired) return 0;
  p->retired += step;
  return step;
}

}  // namespace twin
