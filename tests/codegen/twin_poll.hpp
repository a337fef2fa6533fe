// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "twin.hpp"

namespace twin {

constexpr int batch = 16;

struct completion_queue {
  ibv_cq* native;
  queue* queues;
  std::uint32_t place_mask;
  std::uint32_t connections;
  std::uint32_t left_count;
  ibv_wc left[batch];
};

/// What the program that polls does with completions, for verbena and for the twin.
struct tally {
  std::uint64_t receives, sends, reads, writes, additions, failures;
  std::uint64_t tokens, bytes, values;
  const void* last;
};

/// Whose completions the program wants to hear of.
enum class wants { writes, receives, immediates, additions, datagrams, messages, all };

/// In a wr_id, beside the owner: a receive of a queue pair of datagrams, or of a ring.
constexpr std::uint32_t apart = 0x8'0000;

/// The receives of a shared receive queue, posted again when they have been read, some at a time;
/// and the queue pairs that take from it by their numbers.
struct ring {
  struct place {
    queue* of;
    std::uint32_t number;
  };
  place* places;
  std::size_t place_mask;
  char* memory;
  std::size_t stride;
  std::uint32_t slots;
  std::uint32_t batch;
  ibv_srq* shared;
  ibv_recv_wr* work;
  ibv_recv_wr* first;
  std::uint32_t free;
};

TWIN_COLD void stuck(ring* r, ibv_recv_wr* refused) {
  r->first = refused;
  r->free = 0;
  for (; refused != nullptr; refused = refused->next) r->free += 1;
  for (std::size_t i = 0; i <= r->place_mask; ++i) {
    queue* const q = r->places[i].of;
    if (q == nullptr) continue;
    if (q->failure == 0) q->failure = IBV_WC_FATAL_ERR;
    q->sends.capacity = 0;
    q->receives.capacity = 0;
  }
}

TWIN_INLINE void put_back(ring* r, std::uint32_t slot) {
  if (slot >= r->slots) return;
  r->work[slot].next = r->first;
  r->first = &r->work[slot];
  if (++r->free < r->batch) return;
  ibv_recv_wr* refused = nullptr;
  if (ibv_post_srq_recv(r->shared, r->first, &refused) != 0) [[unlikely]]
    return stuck(r, refused);
  r->first = nullptr;
  r->free = 0;
}

TWIN_COLD void failed(queue* q, const ibv_wc* wc, tally* t) {
  const bool is_receive = ((wc->wr_id >> 36) & 0xf) == receive;
  retire(is_receive ? &q->receives : &q->sends, static_cast<std::uint16_t>(wc->wr_id));
  if (q->failure == 0) q->failure = static_cast<std::uint8_t>(wc->status) & 31;
  q->sends.capacity = 0;
  q->receives.capacity = 0;
  t->failures += 1;
}

TWIN_COLD outcome lost(completion_queue* cq, int value) {
  for (std::uint32_t i = 0; i < cq->connections; ++i) {
    if (cq->queues[i].failure == 0) cq->queues[i].failure = IBV_WC_FATAL_ERR;
    cq->queues[i].sends.capacity = 0;
    cq->queues[i].receives.capacity = 0;
  }
  return {0, value == -1 ? EIO : -value};
}

template <wants Wants>
TWIN_INLINE void completion(completion_queue* cq, const ibv_wc* wc, tally* t) {
  const std::uint64_t id = wc->wr_id;
  const auto owner = static_cast<std::uint32_t>(id >> 16) & 0xfffff;
  queue* const q = &cq->queues[owner & cq->place_mask];
  if (q->owner != owner) {
    if (Wants == wants::messages && q->owner == (owner & ~apart) &&
        ((id >> 36) & 0xf) == shared_receive && wc->status == IBV_WC_SUCCESS) [[likely]] {
      ring* const r = q->ring;
      const auto slot = static_cast<std::uint16_t>(id);
      std::size_t at = wc->qp_num & r->place_mask;
      while (r->places[at].of != nullptr && r->places[at].number != wc->qp_num)
        at = (at + 1) & r->place_mask;
      if (queue* const from = r->places[at].of) [[likely]] {
        const bool has_message = wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM;
        t->receives += 1;
        t->bytes += has_message ? wc->byte_len : 0;
        t->last = has_message ? r->memory + slot * r->stride : nullptr;
        t->values += from->owner;
      }
      return put_back(r, slot);
    }
    if (Wants == wants::datagrams && q->owner == (owner & ~apart) &&
        ((id >> 36) & 0xf) == receive && wc->status == IBV_WC_SUCCESS) [[likely]] {
      const auto place = static_cast<std::uint16_t>(id);
      retire(&q->receives, place);
      // In front of the message are 40 bytes for the sender's GRH.
      auto* const data = static_cast<std::byte*>(q->memory_at[place & q->memory_mask]);
      t->receives += 1;
      t->bytes += data != nullptr ? wc->byte_len - sizeof(ibv_grh) : 0;
      t->last = data != nullptr ? data + sizeof(ibv_grh) : nullptr;
      t->values += wc->src_qp;
    }
    return;
  }
  if (wc->status != IBV_WC_SUCCESS) [[unlikely]]
    return failed(q, wc, t);
  const auto position = static_cast<std::uint16_t>(id);
  const auto what = static_cast<unsigned>(id >> 36) & 0xf;
  if (what == receive) {
    retire(&q->receives, position);
    if (Wants == wants::all || Wants == wants::receives) {
      void* const data = q->memory_at[position & q->memory_mask];
      // The data of a write with immediate lies where the peer wrote it.
      const bool has_message = data != nullptr && wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM;
      t->receives += 1;
      t->bytes += has_message ? wc->byte_len : 0;
      t->last = has_message ? data : nullptr;
    }
    if (Wants == wants::immediates) {
      t->receives += 1;
      t->values += (wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc->imm_data) : 0;
    }
    return;
  }
  retire(&q->sends, position);
  if (Wants == wants::additions && what == fetch_and_add) {
    t->additions += 1;
    std::uint64_t old;
    std::memcpy(&old, (q->memory_at + q->memory_mask + 1)[position & q->memory_mask], sizeof old);
    t->values += old;
  }
  if (Wants == wants::all && what == send) {
    t->sends += 1;
    t->tokens += id >> 40;
  }
  if (Wants == wants::all && what == read) {
    t->reads += 1;
    t->bytes += wc->byte_len;
  }
  if ((Wants == wants::all || Wants == wants::writes) && what == write) {
    t->writes += 1;
    t->tokens += id >> 40;
  }
}

template <wants Wants>
TWIN_COLD outcome poll_left(completion_queue* cq, tally* t) {
  const std::uint32_t count = cq->left_count;
  ibv_wc wc[batch];
  std::memcpy(wc, cq->left, count * sizeof(ibv_wc));
  cq->left_count = 0;
  for (std::uint32_t i = 0; i < count; ++i) completion<Wants>(cq, &wc[i], t);
  return {count, 0};
}

template <wants Wants>
[[gnu::noinline]] outcome poll(completion_queue* cq, tally* t) {
  if (cq->left_count != 0) [[unlikely]]
    return poll_left<Wants>(cq, t);
  ibv_wc wc[batch];
  const int count = ibv_poll_cq(cq->native, batch, wc);
  if (count < 0) [[unlikely]]
    return lost(cq, count);
  for (int i = 0; i < count; ++i) completion<Wants>(cq, &wc[i], t);
  return {static_cast<std::uint32_t>(count), 0};
}

}  // namespace twin
