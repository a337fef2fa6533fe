// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <verbena/memory/piece.hpp>
#include <verbena/operation/operation.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// What a provider took of a chain: all of it, or the first `count`, with its errno.
struct accepted {
  std::uint32_t count;
  int error;
};

/// Axis "posting": which verbs interface carries a chain of send requests. A `chain` of so many
/// requests with so many pieces in all is made on the stack for one queue pair, gets each request
/// in post order, the place of its first piece being known, and is submitted once. The value that
/// submit returned tells whether the chain is complete, and if not, how much of it has entered.
template <class P>
concept posting_policy = requires(typename P::template chain<2, 3>& chain, ibv_qp* queue_pair) {
  requires std::constructible_from<typename P::template chain<2, 3>, ibv_qp*>;
  { chain.submit(queue_pair) } -> std::same_as<int>;
  { chain.complete(0) } -> std::same_as<bool>;
  { chain.entered(0) } -> std::same_as<accepted>;
};

}  // namespace verbena
