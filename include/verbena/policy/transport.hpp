// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

#include <verbena/operation/operation.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

template <class P>
concept names_queue_pair_type = requires {
  { P::queue_pair_type } -> std::convertible_to<ibv_qp_type>;
};

template <class P>
concept tells_operations_carried = requires(operation of) {
  { P::carries(of) } -> std::same_as<bool>;
};

template <class P>
concept has_transition_masks = requires {
  { P::to_init } -> std::convertible_to<int>;
  { P::to_receive } -> std::convertible_to<int>;
  { P::to_send } -> std::convertible_to<int>;
};

/// Axis "transport": which operations are legal, and which attributes each transition of the
/// queue pair needs (ibv_modify_qp(3)).
template <class P>
concept transport_policy =
    names_queue_pair_type<P> && tells_operations_carried<P> && has_transition_masks<P>;

}  // namespace verbena
