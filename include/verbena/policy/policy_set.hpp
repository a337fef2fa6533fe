// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <boost/hana/append.hpp>
#include <boost/hana/bool.hpp>
#include <boost/hana/filter.hpp>
#include <boost/hana/front.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <verbena/policy/axes.hpp>

namespace verbena {

/// One policy of each axis, in the order of the axes: what connection and endpoint are made of.
template <transport_policy Transport, completion_policy Completion, setup_policy Setup,
          errors_policy Errors, signaling_policy Signaling, posting_policy Posting,
          threading_policy Threading, accounting_policy Accounting>
struct policy_set {
  using transport = Transport;
  using completion = Completion;
  using setup = Setup;
  using errors = Errors;
  using signaling = Signaling;
  using posting = Posting;
  using threading = Threading;
  using accounting = Accounting;
};

/// Whether a hana::type is on an axis, for hana::filter.
template <class Axis>
struct is_on {
  template <class Policy>
  constexpr auto operator()(Policy) const {
    return boost::hana::bool_c<Axis::template has<typename Policy::type>>;
  }
};

/// Makes a policy_set of policies in any order; axes without one get their default.
template <class... Policies>
struct select_policies {
  template <class P>
  static constexpr int axes_of =
      int{axis::transport::has<P>} + int{axis::completion::has<P>} + int{axis::setup::has<P>} +
      int{axis::errors::has<P>} + int{axis::signaling::has<P>} + int{axis::posting::has<P>} +
      int{axis::threading::has<P>} + int{axis::accounting::has<P>};

  template <class Axis>
  using on = decltype(boost::hana::filter(boost::hana::tuple_t<Policies...>, is_on<Axis>{}));

  template <class Axis>
  static constexpr bool at_most_one =
      decltype(boost::hana::length(std::declval<on<Axis>>()))::value <= 1;

  template <class Axis>
  using chosen = typename decltype(+boost::hana::front(boost::hana::append(
      std::declval<on<Axis>>(), boost::hana::type_c<typename Axis::fallback>)))::type;

  static_assert(((axes_of<Policies> != 0) && ...),
                "what is named here is no policy: it models none of the concepts transport_policy, "
                "completion_policy, setup_policy, errors_policy, signaling_policy, posting_policy, "
                "threading_policy, accounting_policy");
  static_assert(((axes_of<Policies> <= 1) && ...),
                "a policy belongs to one axis: this one models the concepts of several");
  static_assert(at_most_one<axis::transport>,
                "two transports are named: a connection has one transport policy");
  static_assert(at_most_one<axis::completion>,
                "two ways of completion are named: a connection has one completion policy");
  static_assert(at_most_one<axis::setup>,
                "two setups are named: a connection has one setup policy");
  static_assert(at_most_one<axis::errors>,
                "two ways with errors are named: a connection has one errors policy");
  static_assert(at_most_one<axis::signaling>,
                "two signalings are named: a connection has one signaling policy");
  static_assert(at_most_one<axis::posting>,
                "two postings are named: a connection has one posting policy");
  static_assert(at_most_one<axis::threading>,
                "two threadings are named: a connection has one threading policy");
  static_assert(at_most_one<axis::accounting>,
                "two accountings are named: a connection has one accounting policy");

  static_assert(!chosen<axis::setup>::uses_cm ||
                    chosen<axis::transport>::queue_pair_type == IBV_QPT_RC,
                "setup::cm connects transport::rc alone: with another transport name "
                "setup::descriptor");

  // What retires unsignaled requests at the end of a queue is a write of no bytes, see
  // docs/decisions/0006-the-marker.md.
  static_assert(chosen<axis::transport>::carries(operation::write) ||
                    chosen<axis::signaling>::window(1U << 15U) == 1,
                "transport::ud needs signaling::every: it has no writes, with which the library "
                "completes unsignaled requests at the end of a queue");

  using type = policy_set<chosen<axis::transport>, chosen<axis::completion>, chosen<axis::setup>,
                          chosen<axis::errors>, chosen<axis::signaling>, chosen<axis::posting>,
                          chosen<axis::threading>, chosen<axis::accounting>>;
};

template <class... Policies>
using policies = typename select_policies<Policies...>::type;

}  // namespace verbena
