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

/// ibv_wr_post(3): the provider is told each request by calls of its own, and takes the chain
/// whole or not at all. Needs a provider that has them, see docs/policies/posting.md.
struct builder {
  static constexpr bool uses_qp_ex = true;

  template <class Labels, class... Requests>
  [[gnu::always_inline]] static answer post(ibv_qp* const& queue_pair, Labels&& labels,
                                            const Requests&... requests) {
    // What ibv_qp_to_qp_ex(3) gives for such a queue pair, as its owner has made sure.
    ibv_qp_ex* const to = reinterpret_cast<ibv_qp_ex*>(queue_pair);
    ibv_wr_start(to);
    [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
      (build(to, labels.template operator()<Index>(requests), requests), ...);
    }(std::index_sequence_for<Requests...>{});
    return {ibv_wr_complete(to)};
  }

 private:
  template <class Request>
  [[gnu::always_inline]] static void build(ibv_qp_ex* to, label as, const Request& request) {
    to->wr_id = as.id;
    unsigned flags = as.signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
    if constexpr (send_flags(Request::asked) != 0) flags |= send_flags(Request::asked);
    // The setter says it too; rxe's provider of rdma-core 44 goes by the flag.
    if (as.inlined) flags |= IBV_SEND_INLINE;
    to->wr_flags = flags;
    begin(to, request);
    if constexpr (Request::addressed) {
      ibv_wr_set_ud_addr(to, request.remote().native_handle(), request.remote().number(),
                         request.remote().queue_key());
    }
    if constexpr (Request::piece_count != 0) {
      if (as.inlined) return set_inline_data(to, request);
    }
    set_memory(to, request);
  }

  template <class Request>
  [[gnu::always_inline]] static void begin(ibv_qp_ex* to, const Request& request) {
    constexpr operation what = Request::what;
    if constexpr (what == operation::send) {
      ibv_wr_send(to);
    } else if constexpr (what == operation::send_with_immediate) {
      ibv_wr_send_imm(to, swapped_immediate(request.operands().immediate));
    } else {
      const std::uint64_t address = request.remote().address();
      const auto key = static_cast<std::uint32_t>(request.remote().key());
      if constexpr (what == operation::read) ibv_wr_rdma_read(to, key, address);
      if constexpr (what == operation::write) ibv_wr_rdma_write(to, key, address);
      if constexpr (what == operation::write_with_immediate) {
        ibv_wr_rdma_write_imm(to, key, address, swapped_immediate(request.operands().immediate));
      }
      if constexpr (what == operation::compare_and_swap) {
        ibv_wr_atomic_cmp_swp(to, key, address, request.operands().compare,
                              request.operands().swap);
      }
      if constexpr (what == operation::fetch_and_add) {
        ibv_wr_atomic_fetch_add(to, key, address, request.operands().add);
      }
    }
  }

  template <class Request>
  [[gnu::always_inline]] static void set_memory(ibv_qp_ex* to, const Request& request) {
    if constexpr (Request::piece_count == 1) {
      const auto& memory = request.template local<0>();
      ibv_wr_set_sge(to, static_cast<std::uint32_t>(memory.key()),
                     reinterpret_cast<std::uintptr_t>(memory.data()), length_of<0>(request));
    } else if constexpr (Request::piece_count == 0) {
      // Providers finish a request in its setter: one without data has none to transfer.
      ibv_wr_set_sge_list(to, 0, nullptr);
    } else {
      std::array<ibv_sge, Request::piece_count> entries;
      write_entries(entries.data(), request);
      ibv_wr_set_sge_list(to, entries.size(), entries.data());
    }
  }

  /// The provider only reads what it is given to write.
  template <class Request>
  [[gnu::always_inline]] static void set_inline_data(ibv_qp_ex* to, const Request& request) {
    if constexpr (Request::piece_count == 1) {
      ibv_wr_set_inline_data(to, data_of(request.template local<0>()),
                             request.template local<0>().size_bytes());
    } else {
      std::array<ibv_data_buf, Request::piece_count> buffers;
      [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
        ((buffers[Index] = {data_of(request.template local<Index>()),
                            request.template local<Index>().size_bytes()}),
         ...);
      }(std::make_index_sequence<Request::piece_count>{});
      ibv_wr_set_inline_data_list(to, buffers.size(), buffers.data());
    }
  }

  template <class Memory>
  [[gnu::always_inline]] static void* data_of(const Memory& memory) noexcept {
    return const_cast<void*>(static_cast<const void*>(memory.data()));
  }
};

static_assert(posting_policy<builder>);

}  // namespace verbena::posting
