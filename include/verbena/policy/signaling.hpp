// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstdint>

namespace verbena {

template <class P>
concept chooses_signals = requires(std::uint16_t& unsignaled, std::uint16_t window, bool asked) {
  { P::signals(unsignaled, window, asked) } -> std::same_as<bool>;
};

template <class P>
concept has_signal_window = requires(std::uint32_t depth) {
  { P::window(depth) } -> std::same_as<std::uint16_t>;
};

template <class P>
concept tells_whether_requests_choose = requires {
  { P::by_request } -> std::convertible_to<bool>;
};

/// Axis "signaling": which send requests ask for a completion. `window(depth)` is computed once;
/// `signals` is called for each request in post order and keeps count in `unsignaled`. A policy
/// must signal at least once in half a queue, or the queue would fill and never empty (FC-01).
template <class P>
concept signaling_policy =
    chooses_signals<P> && has_signal_window<P> && tells_whether_requests_choose<P>;

}  // namespace verbena
