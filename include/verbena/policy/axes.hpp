// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/accounting/ledger.hpp>
#include <verbena/policy/completion/busy_poll.hpp>
#include <verbena/policy/errors/throwing.hpp>
#include <verbena/policy/posting/list.hpp>
#include <verbena/policy/setup/descriptor.hpp>
#include <verbena/policy/signaling/every.hpp>
#include <verbena/policy/threading/single_owner.hpp>
#include <verbena/policy/transport/rc.hpp>

/// The axes of a policy set: which types are on each, and what it is when none is named.
namespace verbena::axis {

struct transport {
  template <class P>
  static constexpr bool has = transport_policy<P>;
  using fallback = verbena::transport::rc;
};

struct completion {
  template <class P>
  static constexpr bool has = completion_policy<P>;
  using fallback = verbena::completion::busy_poll;
};

struct setup {
  template <class P>
  static constexpr bool has = setup_policy<P>;
  using fallback = verbena::setup::descriptor;
};

struct errors {
  template <class P>
  static constexpr bool has = errors_policy<P>;
  using fallback = verbena::errors::throwing;
};

struct signaling {
  template <class P>
  static constexpr bool has = signaling_policy<P>;
  using fallback = verbena::signaling::every;
};

struct posting {
  template <class P>
  static constexpr bool has = posting_policy<P>;
  using fallback = verbena::posting::list;
};

struct threading {
  template <class P>
  static constexpr bool has = threading_policy<P>;
  using fallback = verbena::threading::single_owner;
};

struct accounting {
  template <class P>
  static constexpr bool has = accounting_policy<P>;
  using fallback = verbena::accounting::ledger;
};

}  // namespace verbena::axis
