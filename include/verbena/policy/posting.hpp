// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <verbena/memory/view.hpp>
#include <verbena/operation/operation.hpp>
#include <verbena/operation/request.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// What a request is posted with: its wr_id, whether it asks for a completion, and whether its data
/// goes into the work request.
struct label {
  std::uint64_t id;
  bool signaled;
  bool inlined = false;
};

/// How a provider answered to a chain: what its function returned, whether it refused a request,
/// and the id of the first it refused, if the chain has several. It may return 0 and refuse (siw).
struct answer {
  int value = 0;
  bool refuses = false;
  std::uint64_t refused = 0;

  /// `stopped` is read here, while the chain it lies in is alive.
  template <std::size_t Count, class WorkRequest>
  [[gnu::always_inline]] static answer from(int value, const WorkRequest* stopped) noexcept {
    // In one test of both.
    const auto both = static_cast<std::uint32_t>(value) | reinterpret_cast<std::uintptr_t>(stopped);
    if (both == 0) [[likely]]
      return {};
    if constexpr (Count == 1) return {value, true, 0};
    return {value, stopped != nullptr, stopped != nullptr ? stopped->wr_id : 0};
  }

  [[gnu::always_inline]] bool complete() const noexcept { return value == 0 && !refuses; }
};

/// The least a posting policy has to post.
struct sample_request {
  static constexpr operation what = operation::send;
  static constexpr std::size_t piece_count = 1;
  static constexpr bool one_sided = false;
  static constexpr bool addressed = false;
  static constexpr option asked = option::none;
  template <std::size_t>
  const view<std::byte, rights::local_read>& local() const noexcept;
  no_operands operands() const noexcept;
};
struct sample_labels {
  template <std::size_t>
  label operator()(const sample_request&) const noexcept;
};

template <class P>
concept posts_chains = requires(ibv_qp* queue_pair, sample_labels labels, sample_request request) {
  { P::post(queue_pair, labels, request, request) } -> std::same_as<answer>;
};

template <class P>
concept tells_whether_it_uses_qp_ex = requires {
  { P::uses_qp_ex } -> std::convertible_to<bool>;
};

/// Axis "posting": which verbs interface carries a chain of send requests. `post` is given the
/// chain and a function object whose operator()<I> gives request I its label: to be called once
/// for each, in post order, before the provider has the chain. With `uses_qp_ex` the queue pair is
/// the qp_base of an ibv_qp_ex that builds every operation of the transport which the device has.
template <class P>
concept posting_policy = posts_chains<P> && tells_whether_it_uses_qp_ex<P>;

}  // namespace verbena
