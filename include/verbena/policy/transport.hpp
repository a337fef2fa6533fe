// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstdint>

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
concept tells_operations_fenced = requires(operation of) {
  { P::fences(of) } -> std::same_as<bool>;
};

template <class P>
concept has_transition_masks = requires {
  { P::to_init } -> std::convertible_to<int>;
  { P::to_receive } -> std::convertible_to<int>;
  { P::to_send } -> std::convertible_to<int>;
};

template <class P>
concept tells_message_limit = requires(const ibv_port_attr& port) {
  { P::max_message(port) } -> std::same_as<std::uint32_t>;
};

template <class P>
concept tells_receive_prefix = requires {
  { P::receive_prefix } -> std::convertible_to<std::uint32_t>;
};

template <class P>
concept tells_whether_sends_name_a_peer = requires {
  { P::addressed } -> std::convertible_to<bool>;
};

/// Axis "transport": which operations are legal and which of them can be fenced, which attributes
/// each transition of the queue pair needs (ibv_modify_qp(3)), how long a message may be, how
/// many bytes stand in front of it in a receive, and whether each send names its peer.
template <class P>
concept transport_policy =
    names_queue_pair_type<P> && tells_operations_carried<P> && tells_operations_fenced<P> &&
    has_transition_masks<P> && tells_message_limit<P> && tells_receive_prefix<P> &&
    tells_whether_sends_name_a_peer<P>;

}  // namespace verbena
