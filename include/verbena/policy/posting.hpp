// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <verbena/memory/view.hpp>
#include <verbena/operation/operation.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// What a request is posted with: its wr_id, and whether it asks for a completion.
struct label {
  std::uint64_t id;
  bool signaled;
};

/// How a provider answered: what its function returned, and the id of the first request it
/// refused, null where it names none. It may return 0 and name one (siw).
struct answer {
  int value;
  const std::uint64_t* refused;

  /// A work request is known by its first member, so this is a request's address and its id's.
  [[gnu::always_inline]] static answer from(int value, const ibv_send_wr* refused) noexcept {
    static_assert(offsetof(ibv_send_wr, wr_id) == 0);
    return {value, static_cast<const std::uint64_t*>(static_cast<const void*>(refused))};
  }
  [[gnu::always_inline]] static answer from(int value, const ibv_recv_wr* refused) noexcept {
    static_assert(offsetof(ibv_recv_wr, wr_id) == 0);
    return {value, static_cast<const std::uint64_t*>(static_cast<const void*>(refused))};
  }

  /// In one test of both.
  [[gnu::always_inline]] bool complete() const noexcept {
    return (static_cast<std::uint32_t>(value) | reinterpret_cast<std::uintptr_t>(refused)) == 0;
  }
};

/// The least a posting policy has to post.
struct sample_request {
  static constexpr operation what = operation::send;
  static constexpr std::size_t piece_count = 1;
  static constexpr bool one_sided = false;
  template <std::size_t>
  const view<std::byte, rights::local_read>& local() const noexcept;
};
struct sample_labels {
  template <std::size_t>
  label operator()(const sample_request&) const noexcept;
};

/// Axis "posting": which verbs interface carries a chain of send requests. `post` is given the
/// chain and a function object whose operator()<I> gives request I its label: to be called once
/// for each, in post order, before the provider has the chain.
template <class P>
concept posting_policy =
    requires(ibv_qp* queue_pair, sample_labels labels, sample_request request) {
      { P::post(queue_pair, labels, request, request) } -> std::same_as<answer>;
    };

}  // namespace verbena
