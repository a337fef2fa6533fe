// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <verbena/policy/posting.hpp>
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
      for (std::size_t i = 0; i < pieces; ++i) {
        const piece& local = request.local()[i];
        ibv_sge& entry = entries_[FirstPiece + i];
        entry.addr = reinterpret_cast<std::uintptr_t>(local.data);
        entry.length = static_cast<std::uint32_t>(local.size);
        entry.lkey = static_cast<std::uint32_t>(local.key);
      }
      if constexpr (Request::one_sided) {
        work.wr.rdma.remote_addr = request.remote().address();
        work.wr.rdma.rkey = static_cast<std::uint32_t>(request.remote().key());
      }
    }

    [[gnu::always_inline]] accepted submit(ibv_qp* queue_pair) {
      ibv_send_wr* refused = nullptr;
      const int value = ibv_post_send(queue_pair, requests_.data(), &refused);
      if (value == 0 && refused == nullptr) [[likely]]
        return {Requests, 0};
      return stopped_at(refused == nullptr ? 0 : refused - requests_.data(), value);
    }

   private:
    /// A provider may return 0 and still name a request it refused (siw): the pointer decides.
    [[gnu::cold, gnu::noinline]] static accepted stopped_at(std::ptrdiff_t count,
                                                            int value) noexcept {
      return {static_cast<std::uint32_t>(count),
              value == 0 ? EINVAL : verbs::returned_errno(value)};
    }

    static constexpr ibv_wr_opcode opcode(operation of) noexcept {
      switch (of) {
        case operation::read: return IBV_WR_RDMA_READ;
        case operation::write:
        case operation::marker: return IBV_WR_RDMA_WRITE;
        default: return IBV_WR_SEND;
      }
    }

    std::array<ibv_send_wr, Requests> requests_;
    std::array<ibv_sge, Pieces> entries_;
  };
};

static_assert(posting_policy<list>);

}  // namespace verbena::posting
