// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <verbena/policy/posting.hpp>
#include <verbena/policy/posting/entries.hpp>
#include <verbena/verbs/call.hpp>

namespace verbena::posting {

/// ibv_post_send(3) with a linked list of work requests.
struct list {
  template <std::size_t Requests, std::size_t Pieces>
  class chain {
   public:
    // The arrays stay uninitialised: each field that the provider reads is written once, by add().
    [[gnu::always_inline]] explicit chain(ibv_qp*) noexcept {}

    template <std::size_t Index, std::size_t FirstPiece, class Request>
    [[gnu::always_inline]] void add(const Request& request, std::uint64_t id,
                                    bool signaled) noexcept {
      constexpr std::size_t pieces = Request::piece_count;
      ibv_send_wr& work = requests_[Index];
      work.wr_id = id;
      work.next = Index + 1 < Requests ? &requests_[Index + 1] : nullptr;
      work.sg_list = entries_.data() + FirstPiece;
      work.num_sge = static_cast<int>(pieces);
      work.opcode = opcode(Request::what);
      work.send_flags = signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
      write_entries(entries_.data() + FirstPiece, request.local());
      if constexpr (Request::one_sided) {
        work.wr.rdma.remote_addr = request.remote().address();
        work.wr.rdma.rkey = static_cast<std::uint32_t>(request.remote().key());
      }
    }

    [[gnu::always_inline]] int submit(ibv_qp* queue_pair) {
      return ibv_post_send(queue_pair, requests_.data(), &refused_);
    }

    /// A provider may return 0 and still name a request it refused (siw): the pointer decides.
    [[gnu::always_inline]] bool complete(int value) const noexcept {
      return value == 0 && refused_ == nullptr;
    }

    accepted entered(int value) const noexcept {
      std::ptrdiff_t count = 0;
      if (Requests > 1 && refused_ != nullptr) count = refused_ - requests_.data();
      return {static_cast<std::uint32_t>(count), verbs::refused_errno(value)};
    }

   private:
    static constexpr ibv_wr_opcode opcode(operation of) noexcept {
      switch (of) {
        case operation::read: return IBV_WR_RDMA_READ;
        case operation::write:
        case operation::marker: return IBV_WR_RDMA_WRITE;
        default: return IBV_WR_SEND;
      }
    }

    ibv_send_wr* refused_ = nullptr;
    std::array<ibv_send_wr, Requests> requests_;
    std::array<ibv_sge, Pieces> entries_;
  };
};

static_assert(posting_policy<list>);

}  // namespace verbena::posting
