// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include <verbena/soft/queue_pair_control.hpp>

/// The ibv_wr_* interface (ibv_wr_post(3)): requests are put together between wr_start and
/// wr_complete, which posts all of them or none. One thread at a time does so; the queue pair
/// itself is not locked meanwhile, so that the same thread can post receives and poll.
namespace verbena::soft::builder {

inline queue_pair& pair_of(ibv_qp_ex* native) noexcept { return queue_pair::of(&native->qp_base); }

/// What is put together is as much as could be posted and one more, of requests and their pieces:
/// the check of what is too much finds that. So nothing is allocated between wr_start and
/// wr_complete.
inline void make_room(queue_pair& of) {
  of.built.resize(of.requests.size() + 1);
  for (built_request& each : of.built) {
    each.pieces.reserve(of.granted.max_send_sge + std::size_t{1});
    each.inlined.reserve(of.granted.max_inline_data);
  }
}

inline built_request& begin(ibv_qp_ex* native, ibv_wr_opcode opcode) noexcept {
  queue_pair& pair = pair_of(native);
  if (pair.built_count == pair.built.size()) --pair.built_count;
  built_request& made = pair.built[pair.built_count++];
  made.work = {};
  made.pieces.clear();
  made.work.wr_id = native->wr_id;
  made.work.opcode = opcode;
  made.work.send_flags = native->wr_flags;
  return made;
}
inline built_request& last(ibv_qp_ex* native) {
  queue_pair& pair = pair_of(native);
  return pair.built[pair.built_count - 1];
}

inline void remote(built_request& of, std::uint32_t key, std::uint64_t address) {
  of.work.wr.rdma.rkey = key;
  of.work.wr.rdma.remote_addr = address;
}

inline int complete(ibv_qp_ex* native) {
  queue_pair& pair = pair_of(native);
  context& here = context::of(native->qp_base.context);
  const std::scoped_lock held{pair};
  const std::uint32_t state = pair.entry->state.load(std::memory_order_acquire);
  const bool may_post =
      state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
  const std::span<built_request> built{pair.built.data(), pair.built_count};
  int number = may_post ? 0 : EINVAL;
  for (std::size_t i = 0; i < built.size() && number == 0; ++i) {
    built[i].work.sg_list = built[i].pieces.data();
    built[i].work.num_sge = static_cast<int>(built[i].pieces.size());
    number = check_request(here, pair, built[i].work, i);
  }
  requester doing{here, pair};
  if (number == 0) {
    for (const built_request& each : built) take(doing, here, pair, each.work);
  }
  doing.run();
  pair.building.unlock();
  return number;
}

/// Fills in the functions of a queue pair's ibv_qp_ex.
inline void install(ibv_qp_ex& into) {
  into.wr_start = [](ibv_qp_ex* native) {
    pair_of(native).building.lock();
    pair_of(native).built_count = 0;
  };
  into.wr_abort = [](ibv_qp_ex* native) { pair_of(native).building.unlock(); };
  into.wr_complete = complete;
  into.wr_send = [](ibv_qp_ex* native) { begin(native, IBV_WR_SEND); };
  into.wr_send_imm = [](ibv_qp_ex* native, __be32 immediate) {
    begin(native, IBV_WR_SEND_WITH_IMM).work.imm_data = immediate;
  };
  into.wr_rdma_write = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address) {
    remote(begin(native, IBV_WR_RDMA_WRITE), key, address);
  };
  into.wr_rdma_write_imm = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                              __be32 immediate) {
    built_request& made = begin(native, IBV_WR_RDMA_WRITE_WITH_IMM);
    remote(made, key, address);
    made.work.imm_data = immediate;
  };
  into.wr_rdma_read = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address) {
    remote(begin(native, IBV_WR_RDMA_READ), key, address);
  };
  into.wr_atomic_cmp_swp = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                              std::uint64_t compare, std::uint64_t swap) {
    ibv_send_wr& work = begin(native, IBV_WR_ATOMIC_CMP_AND_SWP).work;
    work.wr.atomic = {address, compare, swap, key};
  };
  into.wr_atomic_fetch_add = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                                std::uint64_t add) {
    ibv_send_wr& work = begin(native, IBV_WR_ATOMIC_FETCH_AND_ADD).work;
    work.wr.atomic = {address, add, 0, key};
  };
  into.wr_set_ud_addr = [](ibv_qp_ex* native, ibv_ah* to, std::uint32_t number,
                           std::uint32_t qkey) { last(native).work.wr.ud = {to, number, qkey}; };
  into.wr_set_sge = [](ibv_qp_ex* native, std::uint32_t key, std::uint64_t address,
                       std::uint32_t length) {
    last(native).pieces.assign(1, ibv_sge{address, length, key});
  };
  into.wr_set_sge_list = [](ibv_qp_ex* native, std::size_t count, const ibv_sge* pieces) {
    const queue_pair& pair = pair_of(native);
    const std::size_t most = pair.granted.max_send_sge + std::size_t{1};
    last(native).pieces.assign(pieces, pieces + std::min(count, most));
  };
  into.wr_set_inline_data_list = [](ibv_qp_ex* native, std::size_t count,
                                    const ibv_data_buf* pieces) {
    built_request& made = last(native);
    const std::size_t most = pair_of(native).granted.max_inline_data;
    made.inlined.clear();
    bool fits = true;
    for (const ibv_data_buf* each = pieces; fits && each != pieces + count; ++each) {
      const auto* const from = static_cast<const std::byte*>(each->addr);
      fits = each->length <= most - made.inlined.size();
      if (fits) made.inlined.insert(made.inlined.end(), from, from + each->length);
    }
    const std::size_t length = fits ? made.inlined.size() : most + 1;
    made.work.send_flags |= IBV_SEND_INLINE;
    made.pieces.assign(1, ibv_sge{reinterpret_cast<std::uintptr_t>(made.inlined.data()),
                                  static_cast<std::uint32_t>(length), 0});
  };
  into.wr_set_inline_data = [](ibv_qp_ex* native, void* data, std::size_t length) {
    const ibv_data_buf one{data, length};
    native->wr_set_inline_data_list(native, 1, &one);
  };
}

inline ibv_qp* create(ibv_context* native, ibv_qp_init_attr_ex* asked) {
  if (asked->pd == nullptr) return control::null(EINVAL);
  if (context::of(native).knobs.iwarp != 0 &&
      (asked->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    return control::null(EOPNOTSUPP);
  }
  constexpr std::uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((asked->comp_mask & ~known) != 0) return control::null(EOPNOTSUPP);
  ibv_qp_init_attr plain{};
  plain.qp_context = asked->qp_context;
  plain.send_cq = asked->send_cq;
  plain.recv_cq = asked->recv_cq;
  plain.srq = asked->srq;
  plain.cap = asked->cap;
  plain.qp_type = asked->qp_type;
  plain.sq_sig_all = asked->sq_sig_all;
  if ((asked->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    constexpr std::uint64_t offered =
        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
        IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
        IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    if ((asked->send_ops_flags & ~offered) != 0) return control::null(EOPNOTSUPP);
  }
  ibv_qp* const made = control::create_qp(asked->pd, &plain);
  if (made == nullptr) return nullptr;
  if ((asked->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    queue_pair& pair = queue_pair::of(made);
    undo destroy{[&] { control::destroy_qp(made); }};
    make_room(pair);
    destroy.keep();
    pair.extended = true;
    install(pair.native);
  }
  asked->cap = plain.cap;
  return made;
}

inline ibv_qp_ex* extended(ibv_qp* native) {
  queue_pair& pair = queue_pair::of(native);
  return pair.extended ? &pair.native : nullptr;
}

}  // namespace verbena::soft::builder
