// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "twin_post.hpp"

/// The same requests by ibv_wr_*.
namespace twin::build {

template <operation What>
TWIN_INLINE void begin(ibv_qp_ex* qp, const remote* r, operands o) {
  switch (What) {
    case send: ibv_wr_send(qp); break;
    case send_with_immediate:
      ibv_wr_send_imm(qp, htonl(static_cast<std::uint32_t>(o.first)));
      break;
    case read: ibv_wr_rdma_read(qp, r->key, r->address); break;
    case write: ibv_wr_rdma_write(qp, r->key, r->address); break;
    case write_with_immediate:
      ibv_wr_rdma_write_imm(qp, r->key, r->address, htonl(static_cast<std::uint32_t>(o.first)));
      break;
    case compare_and_swap: ibv_wr_atomic_cmp_swp(qp, r->key, r->address, o.first, o.second); break;
    case fetch_and_add: ibv_wr_atomic_fetch_add(qp, r->key, r->address, o.first); break;
    default: break;
  }
}

template <operation What, std::size_t Pieces>
TWIN_INLINE void set(ibv_qp_ex* qp, const local* l) {
  if (is_atomic(What)) {
    ibv_wr_set_sge(qp, l->key, reinterpret_cast<std::uintptr_t>(l->data), 8);
  } else if (Pieces == 1) {
    ibv_wr_set_sge(qp, l->key, reinterpret_cast<std::uintptr_t>(l->data),
                   static_cast<std::uint32_t>(l->size));
  } else if (Pieces == 0) {
    ibv_wr_set_sge_list(qp, 0, nullptr);
  } else {
    ibv_sge sge[Pieces + (Pieces == 0)];
    gather<Pieces>(sge, l);
    ibv_wr_set_sge_list(qp, Pieces, sge);
  }
}

template <std::size_t Pieces>
TWIN_INLINE void set_inline(ibv_qp_ex* qp, const local* l) {
  if (Pieces == 1) {
    ibv_wr_set_inline_data(qp, l->data, l->size);
  } else {
    const ibv_data_buf parts[2] = {{l[0].data, l[0].size}, {l[1].data, l[1].size}};
    ibv_wr_set_inline_data_list(qp, 2, parts);
  }
}

template <operation What, std::size_t Pieces>
TWIN_INLINE void add(ibv_qp_ex* qp, std::uint64_t id, unsigned wr_flags, const local* l,
                     const remote* r, operands o) {
  qp->wr_id = id;
  qp->wr_flags = wr_flags;
  begin<What>(qp, r, o);
  set<What, Pieces>(qp, l);
}

/// The flags of the next request. Counted in memory, as positions are: what is kept in a register
/// over the calls costs more.
template <signal Signal, bool Last>
TWIN_INLINE unsigned next_flags(queue* q) {
  if (Signal == signal::every) return IBV_SEND_SIGNALED;
  std::uint16_t unsignaled = q->unsignaled;
  unsigned found = IBV_SEND_SIGNALED;
  if ((Signal != signal::last_asks || !Last) && ++unsignaled < q->signal_window) [[likely]] {
    found = 0;
  } else {
    unsignaled = 0;
  }
  q->unsignaled = unsignaled;
  return found;
}

template <operation What, std::size_t Pieces, signal Signal, bool Checks, unsigned Extra = 0,
          inlining Inlining = inlining::never>
[[gnu::noinline]] outcome post_one(queue* q, const local* l, const remote* r, std::uint32_t token,
                                   std::uint64_t first, std::uint64_t second) {
  if (Checks && (!has_room(&q->sends, 1) || !suits<What, Pieces, Inlining>(q, l, r))) [[unlikely]] {
    return refuse(q, &q->sends, l, r, 1);
  }
  ibv_qp_ex* const qp = reinterpret_cast<ibv_qp_ex*>(q->qp);
  const local bare{l->data, l->size, 0, 0};  // what is not registered is given by value
  ibv_wr_start(qp);
  const unsigned wr_flags = next_flags<Signal, true>(q) | Extra;
  note_result<What>(q, q->sends.posted, l);
  qp->wr_id = pack(q, What, q->sends.posted, token);
  if (Inlining == inlining::never) {
    qp->wr_flags = wr_flags;
    begin<What>(qp, r, {first, second});
    set<What, Pieces>(qp, l);
  } else if (Inlining == inlining::always) {
    qp->wr_flags = wr_flags | IBV_SEND_INLINE;
    begin<What>(qp, r, {first, second});
    set_inline<Pieces>(qp, &bare);
  } else {
    const std::size_t total = Pieces == 1 ? l[0].size : l[0].size + l[1].size;
    const bool fits = total <= q->inline_limit;
    qp->wr_flags = wr_flags | (fits ? unsigned{IBV_SEND_INLINE} : 0U);
    begin<What>(qp, r, {first, second});
    if (fits) {
      set_inline<Pieces>(qp, l);
    } else {
      set<What, Pieces>(qp, l);
    }
  }
  const int value = ibv_wr_complete(qp);
  if (value != 0) [[unlikely]]
    return partly(q, &q->sends, 0, value);
  q->sends.posted += 1;
  return {1, 0};
}

template <operation What, std::size_t Pieces, signal Signal, bool Checks>
[[gnu::noinline]] outcome post_two(queue* q, const local* l, const remote* r, std::uint32_t token,
                                   std::uint64_t first, std::uint64_t second) {
  if (Checks && (!has_room(&q->sends, 2) || !suits<What, Pieces>(q, l, r) ||
                 !suits<What, Pieces>(q, l + Pieces, r + 1))) [[unlikely]] {
    return refuse(q, &q->sends, l, r, 2);
  }
  ibv_qp_ex* const qp = reinterpret_cast<ibv_qp_ex*>(q->qp);
  ibv_wr_start(qp);
  const unsigned flags0 = next_flags<Signal, false>(q);
  add<What, Pieces>(qp, pack(q, What, q->sends.posted, token), flags0, l, r, {first, second});
  const unsigned last = next_flags<Signal, true>(q);
  note_result<What>(q, q->sends.posted, l);
  note_result<What>(q, q->sends.posted + 1, l + Pieces);
  add<What, Pieces>(qp, pack(q, What, q->sends.posted + 1, 0), last, l + Pieces, r + 1,
                    {second, first});
  const int value = ibv_wr_complete(qp);
  if (value != 0) [[unlikely]]
    return partly(q, &q->sends, 0, value);
  q->sends.posted += 2;
  return {2, 0};
}

/// Three writes and the send that tells of them.
template <std::size_t Pieces, signal Signal, bool Checks>
[[gnu::noinline]] outcome post_mixed(queue* q, const local* l, const remote* r, std::uint32_t token,
                                     std::uint64_t, std::uint64_t) {
  if (Checks && (!has_room(&q->sends, 4) || !suits<write, Pieces>(q, l, r) ||
                 !suits<write, Pieces>(q, l + Pieces, r + 1) ||
                 !suits<write, Pieces>(q, l + 2 * Pieces, r + 2) ||
                 !suits<send, Pieces>(q, l + 3 * Pieces, nullptr))) [[unlikely]] {
    return refuse(q, &q->sends, l, r, 4);
  }
  ibv_qp_ex* const qp = reinterpret_cast<ibv_qp_ex*>(q->qp);
  ibv_wr_start(qp);
  const std::uint64_t id0 = pack(q, write, q->sends.posted, 0);
  const unsigned flags0 = next_flags<Signal, false>(q);
  add<write, Pieces>(qp, id0, flags0, l, r, {});
  const std::uint64_t id1 = pack(q, write, q->sends.posted + 1, 0);
  const unsigned flags1 = next_flags<Signal, false>(q);
  add<write, Pieces>(qp, id1, flags1, l + Pieces, r + 1, {});
  const std::uint64_t id2 = pack(q, write, q->sends.posted + 2, 0);
  const unsigned flags2 = next_flags<Signal, false>(q);
  add<write, Pieces>(qp, id2, flags2, l + 2 * Pieces, r + 2, {});
  const unsigned last = next_flags<Signal, true>(q);
  add<send, Pieces>(qp, pack(q, send, q->sends.posted + 3, token), last, l + 3 * Pieces, nullptr,
                    {});
  const int value = ibv_wr_complete(qp);
  if (value != 0) [[unlikely]]
    return partly(q, &q->sends, 0, value);
  q->sends.posted += 4;
  return {4, 0};
}

}  // namespace twin::build
