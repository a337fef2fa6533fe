// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <utility>

#include <verbena/chain/posted.hpp>
#include <verbena/verbs/result.hpp>

namespace verbena {

template <class P>
concept delivers_results = requires(result<int>&& of) { P::deliver(std::move(of)); };

template <class P>
concept reacts_to_failures = requires(error value) { P::failed(std::move(value)); };

template <class P>
concept tells_whether_constructors_may_fail = requires {
  { P::constructs } -> std::convertible_to<bool>;
};

/// Axis "errors": what a failing call does. `deliver` turns what set-up returned inside the
/// library into what the user gets; `failed` is told of a failure on the hot path, after which the
/// call returns its value. Both run on the thread of the call.
template <class P>
concept errors_policy =
    delivers_results<P> && reacts_to_failures<P> && tells_whether_constructors_may_fail<P>;

/// What a set-up call for a T returns under a policy.
template <errors_policy P, class T>
using delivered = decltype(P::deliver(std::declval<result<T>>()));

}  // namespace verbena
