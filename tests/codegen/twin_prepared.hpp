// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "twin_post.hpp"

/// Work requests that are kept, and posted again and again.
namespace twin::prepared {

template <std::size_t Requests, std::size_t Pieces>
struct chain {
  ibv_send_wr wr[Requests];
  ibv_sge sge[Requests * Pieces + (Pieces == 0)];
  std::uint64_t ids[Requests];
  const queue* of;
  std::uint32_t owner;
};

template <operation What, std::size_t Pieces, std::size_t Requests>
void prepare(chain<Requests, Pieces>* c, const queue* q, const local* l, const remote* r,
             std::uint32_t token, operands o) {
  std::memset(c, 0, sizeof *c);
  for (std::size_t i = 0; i < Requests; ++i) {
    fill<What, Pieces>(&c->wr[i], i + 1 < Requests ? &c->wr[i + 1] : nullptr, c->sge + i * Pieces,
                       0, 0, l + i * Pieces, r + i, i == 0 ? o : operands{o.second, o.first});
    c->ids[i] = pack(q, What, 0, i == 0 ? token : 0);
  }
  c->of = q;
  c->owner = q->owner;
}

/// Of a chain that belongs to another connection.
TWIN_COLD outcome stranger(const queue* q, const positions* p, std::uint32_t requests) {
  if (p->posted - p->retired + requests > p->capacity) return {0, q->failure != 0 ? -6 : -5};
  return {0, -27};
}

template <operation What, std::size_t Requests, std::size_t Pieces, signal Signal, bool Checks>
[[gnu::noinline]] outcome post(queue* q, chain<Requests, Pieces>* c) {
  if (Checks && (!has_room(&q->sends, Requests) || c->of != q || c->owner != q->owner))
      [[unlikely]] {
    return stranger(q, &q->sends, Requests);
  }
  const std::uint32_t position = q->sends.posted;
  std::uint16_t unsignaled = q->unsignaled;
  c->wr[0].wr_id = c->ids[0] | (position & 0xffff);
  c->wr[0].send_flags = flags < Signal, Requests == 1 > (&unsignaled, q->signal_window);
  if (Requests == 2) {
    c->wr[1].wr_id = c->ids[1] | ((position + 1) & 0xffff);
    c->wr[1].send_flags = flags<Signal, true>(&unsignaled, q->signal_window);
  }
  if (Signal != signal::every) q->unsignaled = unsignaled;
  if (is_atomic(What)) {
    void** const ring = q->memory_at + q->memory_mask + 1;
    ring[position & q->memory_mask] = reinterpret_cast<void*>(c->sge[0].addr);
    if (Requests == 2) {
      ring[(position + 1) & q->memory_mask] = reinterpret_cast<void*>(c->sge[1].addr);
    }
  }
  ibv_send_wr* bad = nullptr;
  const int value = ibv_post_send(q->qp, c->wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]] {
    return partly(q, &q->sends, bad == nullptr ? 0 : bad - c->wr, value);
  }
  q->sends.posted += Requests;
  return {Requests, 0};
}

}  // namespace twin::prepared
