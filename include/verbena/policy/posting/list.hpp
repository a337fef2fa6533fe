// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/immediate.hpp>
#include <verbena/policy/posting.hpp>
#include <verbena/policy/posting/entries.hpp>
#include <verbena/policy/posting/send_flags.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena::posting {

/// ibv_post_send(3) with a linked list of work requests.
struct list {
  static constexpr bool uses_qp_ex = false;

  template <class Labels, class... Requests>
  [[gnu::always_inline]] static answer post(ibv_qp* const& queue_pair, Labels&& labels,
                                            const Requests&... requests) {
    constexpr std::size_t count = sizeof...(Requests);
    // Uninitialised, each field that the provider reads is written once; and not in one object,
    // whose address the compilers then keep in a register.
    std::array<ibv_send_wr, count> work;
    std::array<ibv_sge, piece_sum<Requests...>> entries;
    [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
      // First what came in registers: it would be put aside while the rest is written.
      (write_numbers(work[Index], requests), ...);
      (write(work[Index], Index + 1 < count ? &work[Index + 1] : nullptr,
             entries.data() + first_piece<Requests...>(Index),
             labels.template operator()<Index>(requests), requests),
       ...);
    }(std::index_sequence_for<Requests...>{});
    ibv_send_wr* stopped = nullptr;
    const int value = ibv_post_send(queue_pair, work.data(), &stopped);
    return answer::from<count>(value, stopped);
  }

  /// Fills in what is constant of a chain: all but ids, signals and how the requests are linked.
  template <std::size_t Count, std::size_t Entries, class... Requests>
  static void prepare(std::array<ibv_send_wr, Count>& work, std::array<ibv_sge, Entries>& entries,
                      const Requests&... requests) noexcept {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      (write_numbers(work[Index], requests), ...);
      (write(work[Index], nullptr, entries.data() + first_piece<Requests...>(Index), {}, requests),
       ...);
    }(std::index_sequence_for<Requests...>{});
  }

 private:
  template <class Request>
  [[gnu::always_inline]] static void write(ibv_send_wr& work, ibv_send_wr* next, ibv_sge* entries,
                                           label as, const Request& request) noexcept {
    work.wr_id = as.id;
    work.next = next;
    work.sg_list = Request::piece_count == 0 ? nullptr : entries;
    work.num_sge = static_cast<int>(Request::piece_count);
    work.opcode = opcode(Request::what);
    work.send_flags = as.signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
    if constexpr (posting::send_flags(Request::asked) != 0) {
      work.send_flags |= posting::send_flags(Request::asked);
    }
    if (as.inlined) work.send_flags |= IBV_SEND_INLINE;
    if constexpr (Request::what == operation::read || Request::what == operation::write) {
      work.wr.rdma.remote_addr = request.remote().address();
      work.wr.rdma.rkey = static_cast<std::uint32_t>(request.remote().key());
    }
    write_entries(entries, request);
  }

  /// The numbers that a request works with, those of an atomic's target beside them, and its peer.
  template <class Request>
  [[gnu::always_inline]] static void write_numbers(ibv_send_wr& work,
                                                   const Request& request) noexcept {
    if constexpr (has_immediate(Request::what)) {
      work.imm_data = swapped_immediate(request.operands().immediate);
      if constexpr (Request::one_sided) {
        work.wr.rdma.remote_addr = request.remote().address();
        work.wr.rdma.rkey = static_cast<std::uint32_t>(request.remote().key());
      }
    }
    if constexpr (Request::addressed) {
      work.wr.ud.ah = request.remote().native_handle();
      work.wr.ud.remote_qpn = request.remote().number();
      work.wr.ud.remote_qkey = request.remote().queue_key();
    }
    if constexpr (is_atomic(Request::what)) {
      work.wr.atomic.remote_addr = request.remote().address();
      if constexpr (Request::what == operation::compare_and_swap) {
        work.wr.atomic.compare_add = request.operands().compare;
        work.wr.atomic.swap = request.operands().swap;
      } else {
        work.wr.atomic.compare_add = request.operands().add;
      }
      work.wr.atomic.rkey = static_cast<std::uint32_t>(request.remote().key());
    }
  }

  static constexpr ibv_wr_opcode opcode(operation of) noexcept {
    switch (of) {
      case operation::read: return IBV_WR_RDMA_READ;
      case operation::send_with_immediate: return IBV_WR_SEND_WITH_IMM;
      case operation::write_with_immediate: return IBV_WR_RDMA_WRITE_WITH_IMM;
      case operation::compare_and_swap: return IBV_WR_ATOMIC_CMP_AND_SWP;
      case operation::fetch_and_add: return IBV_WR_ATOMIC_FETCH_AND_ADD;
      case operation::write:
      case operation::marker: return IBV_WR_RDMA_WRITE;
      default: return IBV_WR_SEND;
    }
  }
};

static_assert(posting_policy<list>);

}  // namespace verbena::posting
