// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "twin.hpp"

namespace twin {

/// Which requests ask for a completion: all; one in a window; each says so itself, where the last
/// of a chain asks, or none does.
enum class signal { every, one_in, last_asks, none_asks };

TWIN_INLINE bool has_room(const positions* p, std::uint32_t requests) {
  return p->posted - p->retired + requests <= p->capacity;
}

// A size of 0 is refused: adapters read it as 2^31.
template <operation What>
TWIN_INLINE bool fits(const queue* q, const local* l) {
  const std::size_t most = What == receive ? std::size_t{1} << 31 : q->max_message;
  return l->domain == q->domain && l->size - 1 < most;
}

/// How data goes inline: not, where it fits, or always, from memory that is not registered.
enum class inlining { never, where_it_fits, always };

TWIN_INLINE constexpr bool is_immediate(operation of) {
  return of == send_with_immediate || of == write_with_immediate;
}
TWIN_INLINE constexpr bool is_atomic(operation of) {
  return of == compare_and_swap || of == fetch_and_add;
}
TWIN_INLINE constexpr bool is_rdma(operation of) {
  return of == read || of == write || of == write_with_immediate;
}

template <operation What, std::size_t Pieces, inlining Inlining = inlining::never>
TWIN_INLINE bool suits(const queue* q, const local* l, const remote* r) {
  if (Inlining == inlining::always) {
    return l->size <= q->inline_limit && l->size - 1 < q->max_message &&
           (!is_rdma(What) || l->size <= r->size);
  }
  if (is_immediate(What) && (q->lacking & 1) != 0) return false;
  if (is_atomic(What)) {
    return (q->lacking & 2) == 0 && l->domain == q->domain && l->size != 0 && r->size != 0 &&
           r->address % 8 == 0 && q->read_pieces != 0;
  }
  if (What == receive && Pieces == 0) return (q->lacking & 4) == 0;
  if (What == read && Pieces > q->read_pieces) return false;
  if (What == receive && Pieces > 1 && Pieces > q->receive_pieces) return false;
  if (What != read && What != receive && Pieces > 1 && Pieces > q->send_pieces) return false;
  if (Pieces == 0) return true;
  if (Pieces == 1) return fits<What>(q, l) && (!is_rdma(What) || l->size <= r->size);
  return fits<What>(q, l) && fits<What>(q, l + 1) &&
         (What == receive || l[0].size + l[1].size <= q->max_message) &&
         (!is_rdma(What) || l[0].size + l[1].size <= r->size);
}

/// Why a post was refused, found out after the fact.
TWIN_COLD outcome refuse(const queue* q, const positions* p, const local* l, const remote* r,
                         std::uint32_t requests) {
  if (q->failure != 0) return {0, -6};
  if (p->posted - p->retired + requests > p->capacity) return {0, -5};
  if (l->domain != q->domain) return {0, -7};
  if (r != nullptr && l->size > r->size) return {0, -9};
  return {0, -8};
}

TWIN_COLD outcome partly(queue* q, positions* p, std::ptrdiff_t entered, int value) {
  // The next request is signaled, whatever the count was.
  if (p == &q->sends) q->unsignaled = static_cast<std::uint16_t>(q->signal_window - 1);
  p->posted += static_cast<std::uint32_t>(entered);
  if (value < 0) value = -value;
  if (value == ENOMEM && p->posted != p->retired) return {static_cast<std::uint32_t>(entered), -5};
  return {static_cast<std::uint32_t>(entered), value == 0 ? EINVAL : value};
}

template <signal Signal, bool Last>
TWIN_INLINE unsigned flags(std::uint16_t* unsignaled, std::uint16_t window) {
  if (Signal == signal::every) return IBV_SEND_SIGNALED;
  if (Signal != signal::last_asks || !Last) {
    if (Signal == signal::last_asks || Signal == signal::none_asks || Signal == signal::one_in) {
      if (++*unsignaled < window) return 0;
    }
  }
  *unsignaled = 0;
  return IBV_SEND_SIGNALED;
}

/// As with the usual `ibv_send_wr wr = {};`, for comparison.
template <class Requests, class Pieces>
TWIN_INLINE void clear(Requests& wr, Pieces& sge) {
  std::memset(&wr, 0, sizeof wr);
  std::memset(&sge, 0, sizeof sge);
}

template <std::size_t Pieces>
TWIN_INLINE void gather(ibv_sge* sge, const local* l) {
  if (Pieces == 0) return;
  sge[0].addr = reinterpret_cast<std::uintptr_t>(l[0].data);
  sge[0].length = static_cast<std::uint32_t>(l[0].size);
  sge[0].lkey = l[0].key;
  if (Pieces == 2) {
    sge[1].addr = reinterpret_cast<std::uintptr_t>(l[1].data);
    sge[1].length = static_cast<std::uint32_t>(l[1].size);
    sge[1].lkey = l[1].key;
  }
}

TWIN_INLINE constexpr ibv_wr_opcode opcode(operation of) {
  switch (of) {
    case read: return IBV_WR_RDMA_READ;
    case write: return IBV_WR_RDMA_WRITE;
    case send_with_immediate: return IBV_WR_SEND_WITH_IMM;
    case write_with_immediate: return IBV_WR_RDMA_WRITE_WITH_IMM;
    case compare_and_swap: return IBV_WR_ATOMIC_CMP_AND_SWP;
    case fetch_and_add: return IBV_WR_ATOMIC_FETCH_AND_ADD;
    default: return IBV_WR_SEND;
  }
}

template <operation What, std::size_t Pieces>
TWIN_INLINE void fill(ibv_send_wr* wr, ibv_send_wr* next, ibv_sge* sge, std::uint64_t id,
                      unsigned send_flags, const local* l, const remote* r, operands o) {
  wr->wr_id = id;
  wr->next = next;
  wr->sg_list = Pieces == 0 ? nullptr : sge;
  wr->num_sge = static_cast<int>(Pieces);
  wr->opcode = opcode(What);
  wr->send_flags = send_flags;
  if (is_immediate(What)) wr->imm_data = htonl(static_cast<std::uint32_t>(o.first));
  if (is_rdma(What)) {
    wr->wr.rdma.remote_addr = r->address;
    wr->wr.rdma.rkey = r->key;
  }
  if (is_atomic(What)) {
    wr->wr.atomic.compare_add = o.first;
    if (What == compare_and_swap) wr->wr.atomic.swap = o.second;
    wr->wr.atomic.remote_addr = r->address;
    wr->wr.atomic.rkey = r->key;
    sge[0] = {reinterpret_cast<std::uintptr_t>(l->data), 8, l->key};
    return;
  }
  gather<Pieces>(sge, l);
}

/// Where the old value of an atomic is found when it has completed.
template <operation What>
TWIN_INLINE void note_result(queue* q, std::uint32_t position, const local* l) {
  if (is_atomic(What)) {
    (q->memory_at + q->memory_mask + 1)[position & q->memory_mask] = l->data;
  }
}

template <operation What, std::size_t Pieces, signal Signal, bool Checks, bool Zeroed = false,
          unsigned Extra = 0, inlining Inlining = inlining::never>
[[gnu::noinline]] outcome post_one(queue* q, const local* l, const remote* r, std::uint32_t token,
                                   std::uint64_t first, std::uint64_t second) {
  if (Checks && (!has_room(&q->sends, 1) || !suits<What, Pieces, Inlining>(q, l, r))) [[unlikely]] {
    return refuse(q, &q->sends, l, r, 1);
  }
  unsigned extra = Extra | (Inlining == inlining::always ? unsigned{IBV_SEND_INLINE} : 0U);
  if (Inlining == inlining::where_it_fits) {
    const std::size_t total = Pieces == 1 ? l[0].size : l[0].size + l[1].size;
    if (total <= q->inline_limit) extra |= IBV_SEND_INLINE;
  }
  ibv_send_wr wr;
  ibv_sge sge[Pieces + (Pieces == 0)];
  if (Zeroed) clear(wr, sge);
  ibv_send_wr* bad = nullptr;
  const std::uint32_t position = q->sends.posted;
  const local bare{l->data, l->size, 0, 0};
  const local* const from = Inlining == inlining::always ? &bare : l;
  fill<What, Pieces>(&wr, nullptr, sge, pack(q, What, position, token),
                     flags<Signal, true>(&q->unsignaled, q->signal_window) | extra, from, r,
                     {first, second});
  note_result<What>(q, position, l);
  const int value = ibv_post_send(q->qp, &wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]]
    return partly(q, &q->sends, 0, value);
  q->sends.posted += 1;
  return {1, 0};
}

template <operation What, std::size_t Pieces, signal Signal, bool Checks, bool Zeroed = false>
[[gnu::noinline]] outcome post_two(queue* q, const local* l, const remote* r, std::uint32_t token,
                                   std::uint64_t first, std::uint64_t second) {
  if (Checks && (!has_room(&q->sends, 2) || !suits<What, Pieces>(q, l, r) ||
                 !suits<What, Pieces>(q, l + Pieces, r + 1))) [[unlikely]] {
    return refuse(q, &q->sends, l, r, 2);
  }
  ibv_send_wr wr[2];
  ibv_sge sge[2 * Pieces + (Pieces == 0)];
  if (Zeroed) clear(wr, sge);
  ibv_send_wr* bad = nullptr;
  const std::uint32_t position = q->sends.posted;
  std::uint16_t unsignaled = q->unsignaled;
  const std::uint16_t window = q->signal_window;
  fill<What, Pieces>(&wr[0], &wr[1], sge, pack(q, What, position, token),
                     flags<Signal, false>(&unsignaled, window), l, r, {first, second});
  fill<What, Pieces>(&wr[1], nullptr, sge + Pieces, pack(q, What, position + 1, 0),
                     flags<Signal, true>(&unsignaled, window), l + Pieces, r + 1, {second, first});
  note_result<What>(q, position, l);
  note_result<What>(q, position + 1, l + Pieces);
  if (Signal != signal::every) q->unsignaled = unsignaled;
  const int value = ibv_post_send(q->qp, wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]] {
    return partly(q, &q->sends, bad == nullptr ? 0 : bad - wr, value);
  }
  q->sends.posted += 2;
  return {2, 0};
}

/// Three writes and the send that tells of them.
template <std::size_t Pieces, signal Signal, bool Checks, bool Zeroed = false>
[[gnu::noinline]] outcome post_mixed(queue* q, const local* l, const remote* r, std::uint32_t token,
                                     std::uint64_t, std::uint64_t) {
  if (Checks && (!has_room(&q->sends, 4) || !suits<write, Pieces>(q, l, r) ||
                 !suits<write, Pieces>(q, l + Pieces, r + 1) ||
                 !suits<write, Pieces>(q, l + 2 * Pieces, r + 2) ||
                 !suits<send, Pieces>(q, l + 3 * Pieces, nullptr))) [[unlikely]] {
    return refuse(q, &q->sends, l, r, 4);
  }
  ibv_send_wr wr[4];
  ibv_sge sge[4 * Pieces];
  if (Zeroed) clear(wr, sge);
  ibv_send_wr* bad = nullptr;
  const std::uint32_t position = q->sends.posted;
  std::uint16_t unsignaled = q->unsignaled;
  const std::uint16_t window = q->signal_window;
  fill<write, Pieces>(&wr[0], &wr[1], sge, pack(q, write, position, 0),
                      flags<Signal, false>(&unsignaled, window), l, r, {});
  fill<write, Pieces>(&wr[1], &wr[2], sge + Pieces, pack(q, write, position + 1, 0),
                      flags<Signal, false>(&unsignaled, window), l + Pieces, r + 1, {});
  fill<write, Pieces>(&wr[2], &wr[3], sge + 2 * Pieces, pack(q, write, position + 2, 0),
                      flags<Signal, false>(&unsignaled, window), l + 2 * Pieces, r + 2, {});
  fill<send, Pieces>(&wr[3], nullptr, sge + 3 * Pieces, pack(q, send, position + 3, token),
                     flags<Signal, true>(&unsignaled, window), l + 3 * Pieces, nullptr, {});
  if (Signal != signal::every) q->unsignaled = unsignaled;
  const int value = ibv_post_send(q->qp, wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]] {
    return partly(q, &q->sends, bad == nullptr ? 0 : bad - wr, value);
  }
  q->sends.posted += 4;
  return {4, 0};
}

template <std::size_t Pieces>
TWIN_INLINE void fill(ibv_recv_wr* wr, ibv_recv_wr* next, ibv_sge* sge, std::uint64_t id,
                      const local* l) {
  wr->wr_id = id;
  wr->next = next;
  wr->sg_list = Pieces == 0 ? nullptr : sge;
  wr->num_sge = static_cast<int>(Pieces);
  gather<Pieces>(sge, l);
}

template <std::size_t Pieces, bool Checks, bool Zeroed = false>
[[gnu::noinline]] outcome receive_one(queue* q, const local* l, const remote*, std::uint32_t token,
                                      std::uint64_t, std::uint64_t) {
  if (Checks && (!has_room(&q->receives, 1) || !suits<receive, Pieces>(q, l, nullptr)))
      [[unlikely]] {
    return refuse(q, &q->receives, l, nullptr, 1);
  }
  ibv_recv_wr wr;
  ibv_sge sge[Pieces + (Pieces == 0)];
  if (Zeroed) clear(wr, sge);
  ibv_recv_wr* bad = nullptr;
  const std::uint32_t position = q->receives.posted;
  fill<Pieces>(&wr, nullptr, sge, pack(q, receive, position, token), l);
  q->memory_at[position & q->memory_mask] = Pieces == 1 ? l->data : nullptr;
  const int value = ibv_post_recv(q->qp, &wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]]
    return partly(q, &q->receives, 0, value);
  q->receives.posted += 1;
  return {1, 0};
}

template <std::size_t Pieces, bool Checks, bool Zeroed = false>
[[gnu::noinline]] outcome receive_two(queue* q, const local* l, const remote*, std::uint32_t token,
                                      std::uint64_t, std::uint64_t) {
  if (Checks && (!has_room(&q->receives, 2) || !suits<receive, Pieces>(q, l, nullptr) ||
                 !suits<receive, Pieces>(q, l + Pieces, nullptr))) [[unlikely]] {
    return refuse(q, &q->receives, l, nullptr, 2);
  }
  ibv_recv_wr wr[2];
  ibv_sge sge[2 * Pieces + (Pieces == 0)];
  if (Zeroed) clear(wr, sge);
  ibv_recv_wr* bad = nullptr;
  const std::uint32_t position = q->receives.posted;
  fill<Pieces>(&wr[0], &wr[1], sge, pack(q, receive, position, token), l);
  fill<Pieces>(&wr[1], nullptr, sge + Pieces, pack(q, receive, position + 1, 0), l + Pieces);
  void** const ring = q->memory_at;
  const std::uint32_t mask = q->memory_mask;
  ring[position & mask] = Pieces == 1 ? l[0].data : nullptr;
  ring[(position + 1) & mask] = Pieces == 1 ? l[1].data : nullptr;
  const int value = ibv_post_recv(q->qp, wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]] {
    return partly(q, &q->receives, bad == nullptr ? 0 : bad - wr, value);
  }
  q->receives.posted += 2;
  return {2, 0};
}

}  // namespace twin
