// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <verbena/policy/posting.hpp>
#include <verbena/policy/posting/entries.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena::posting {

/// ibv_post_send(3) with a linked list of work requests.
struct list {
  template <class Labels, class... Requests>
  [[gnu::always_inline]] static answer post(ibv_qp* const& queue_pair, Labels&& labels,
                                            const Requests&... requests) {
    constexpr std::size_t count = sizeof...(Requests);
    // Uninitialised, each field that the provider reads is written once; and not in one object,
    // whose address the compilers then keep in a register.
    std::array<ibv_send_wr, count> work;
    std::array<ibv_sge, (Requests::piece_count + ...)> entries;
    [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
      (write(work[Index], Index + 1 < count ? &work[Index + 1] : nullptr,
             entries.data() + first_piece<Requests...>(Index),
             labels.template operator()<Index>(requests), requests),
       ...);
    }(std::index_sequence_for<Requests...>{});
    ibv_send_wr* stopped = nullptr;
    const int value = ibv_post_send(queue_pair, work.data(), &stopped);
    return answer::from<count>(value, stopped);
  }

 private:
  template <class Request>
  [[gnu::always_inline]] static void write(ibv_send_wr& work, ibv_send_wr* next, ibv_sge* entries,
                                           label as, const Request& request) noexcept {
    work.wr_id = as.id;
    work.next = next;
    work.sg_list = entries;
    work.num_sge = static_cast<int>(Request::piece_count);
    work.opcode = opcode(Request::what);
    work.send_flags = as.signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
    if constexpr (Request::one_sided) {
      work.wr.rdma.remote_addr = request.remote().address();
      work.wr.rdma.rkey = static_cast<std::uint32_t>(request.remote().key());
    }
    write_entries(entries, request);
  }

  static constexpr ibv_wr_opcode opcode(operation of) noexcept {
    switch (of) {
      case operation::read: return IBV_WR_RDMA_READ;
      case operation::write:
      case operation::marker: return IBV_WR_RDMA_WRITE;
      default: return IBV_WR_SEND;
    }
  }
};

static_assert(posting_policy<list>);

}  // namespace verbena::posting
