// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "machine.hpp"
#include "provider.hpp"

/// ibv_wr_* of a queue pair that was made for it (ibv_wr_post(3)): a critical section in which
/// requests are put together, posted whole by wr_complete or not at all.
namespace fabricated::builder {

inline machine& owner_of(ibv_qp_ex* native) { return machine::of(native->qp_base.context); }

inline void start(ibv_qp_ex* native) {
  owner_of(native).lock.lock();
  queue_pair& pair = machine::of(native);
  if (pair.building) owner_of(native).violated("ibv_wr_start before ibv_wr_complete");
  pair.building = true;
  pair.built.clear();
}

inline ibv_send_wr& begin(ibv_qp_ex* native, ibv_wr_opcode opcode, std::uint64_t needs) {
  queue_pair& pair = machine::of(native);
  if (!pair.building) owner_of(native).violated("a request is built without ibv_wr_start");
  if ((pair.send_ops & needs) == 0) {
    owner_of(native).violated("a request is built that the queue pair was not made for");
  }
  ibv_send_wr& work = pair.built.emplace_back().work;
  work.wr_id = native->wr_id;
  work.opcode = opcode;
  work.send_flags = native->wr_flags & ~unsigned{IBV_SEND_INLINE};
  // Gone, so that the next request can not go by them.
  native->wr_id = 0x6661'6272'6963'6174;
  native->wr_flags = 0xffff'ffff;
  return work;
}

/// The data of the last request.
inline built_send& set(ibv_qp_ex* native) {
  built_send& last = machine::of(native).built.back();
  if (++last.setters != 1) owner_of(native).violated("the data of a request is set twice");
  return last;
}

inline int complete(ibv_qp_ex* native) {
  machine& owner = owner_of(native);
  queue_pair& pair = machine::of(native);
  const std::size_t before = pair.sends.posted.size();
  const std::optional<int> refused = owner.refuse.next(call::wr_complete);
  int number = refused.value_or(0);
  for (built_send& each : pair.built) {
    if (each.setters == 0) owner.violated("a request is built whose data is not set");
    each.work.sg_list = each.pieces.data();
    each.work.num_sge = static_cast<int>(each.pieces.size());
    if (number == 0) number = provider::take_send(owner, pair, each.work);
  }
  if (number != 0) {
    pair.sends.posted.erase(pair.sends.posted.begin() + static_cast<std::ptrdiff_t>(before),
                            pair.sends.posted.end());
  }
  pair.building = false;
  if (pair.qp_base.state == IBV_QPS_ERR && owner.flushes_on_error) owner.flush(&native->qp_base);
  owner.lock.unlock();
  return number;
}

inline void install(ibv_qp_ex& into) {
  into.wr_start = start;
  into.wr_complete = complete;
  into.wr_send = [](ibv_qp_ex* native) { begin(native, IBV_WR_SEND, IBV_QP_EX_WITH_SEND); };
  into.wr_send_imm = [](ibv_qp_ex* native, __be32 immediate) {
    begin(native, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM).imm_data = immediate;
  };
  into.wr_rdma_read = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address) {
    begin(native, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ).wr.rdma = {address, key};
  };
  into.wr_rdma_write = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address) {
    begin(native, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE).wr.rdma = {address, key};
  };
  into.wr_rdma_write_imm = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                              __be32 immediate) {
    ibv_send_wr& work =
        begin(native, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
    work.wr.rdma = {address, key};
    work.imm_data = immediate;
  };
  into.wr_atomic_cmp_swp = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                              std::uint64_t compare, std::uint64_t swap) {
    begin(native, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP).wr.atomic = {
        address, compare, swap, key};
  };
  into.wr_atomic_fetch_add = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                                std::uint64_t add) {
    begin(native, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD).wr.atomic = {
        address, add, 0, key};
  };
  into.wr_set_sge = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                       std::uint32_t length) {
    set(native).pieces.assign(1, ibv_sge{address, length, key});
  };
  into.wr_set_sge_list = [](ibv_qp_ex* native, std::size_t count, const ibv_sge* pieces) {
    set(native).pieces.assign(pieces, pieces + count);
  };
  into.wr_set_inline_data_list = [](ibv_qp_ex* native, std::size_t count,
                                    const ibv_data_buf* parts) {
    built_send& last = set(native);
    for (const ibv_data_buf* each = parts; each != parts + count; ++each) {
      const auto* const from = static_cast<const std::byte*>(each->addr);
      last.inlined.insert(last.inlined.end(), from, from + each->length);
    }
    last.work.send_flags |= IBV_SEND_INLINE;
    last.pieces.assign(1, ibv_sge{reinterpret_cast<std::uintptr_t>(last.inlined.data()),
                                  static_cast<std::uint32_t>(last.inlined.size()), 0});
  };
  into.wr_set_inline_data = [](ibv_qp_ex* native, void* data, std::size_t length) {
    const ibv_data_buf one{data, length};
    native->wr_set_inline_data_list(native, 1, &one);
  };
}

}  // namespace fabricated::builder
