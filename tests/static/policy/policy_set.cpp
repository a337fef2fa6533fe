// SPDX-License-Identifier: BSL-1.0
#include <type_traits>

#include <verbena/policy/accounting/unchecked.hpp>
#include <verbena/policy/completion/event_driven.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/setup/cm.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

namespace vb = verbena;

// Without a name each axis has its default.
using none = vb::policies<>;
static_assert(std::is_same_v<none::transport, vb::transport::rc>);
static_assert(std::is_same_v<none::completion, vb::completion::busy_poll>);
static_assert(std::is_same_v<none::setup, vb::setup::descriptor>);
static_assert(std::is_same_v<none::errors, vb::errors::throwing>);
static_assert(std::is_same_v<none::signaling, vb::signaling::every>);
static_assert(std::is_same_v<none::posting, vb::posting::list>);
static_assert(std::is_same_v<none::threading, vb::threading::single_owner>);
static_assert(std::is_same_v<none::accounting, vb::accounting::ledger>);

// A default that is named is the default.
static_assert(std::is_same_v<none, vb::policies<vb::transport::rc>>);
static_assert(std::is_same_v<none, vb::policies<vb::accounting::ledger, vb::signaling::every>>);

// The order does not matter, and one type comes out.
using one_way = vb::policies<vb::setup::cm, vb::completion::event_driven, vb::errors::returning,
                             vb::signaling::one_in<16>>;
using other_way = vb::policies<vb::signaling::one_in<16>, vb::errors::returning,
                               vb::completion::event_driven, vb::setup::cm>;
static_assert(std::is_same_v<one_way, other_way>);
static_assert(std::is_same_v<one_way::setup, vb::setup::cm>);
static_assert(std::is_same_v<one_way::completion, vb::completion::event_driven>);
static_assert(std::is_same_v<one_way::errors, vb::errors::returning>);
static_assert(std::is_same_v<one_way::signaling, vb::signaling::one_in<16>>);
static_assert(std::is_same_v<one_way::transport, vb::transport::rc>);
static_assert(!std::is_same_v<one_way, none>);

// Another parameter makes another policy.
static_assert(!std::is_same_v<vb::policies<vb::signaling::one_in<16>>,
                              vb::policies<vb::signaling::one_in<8>>>);

// Every policy of ours is on one axis alone.
template <class P>
inline constexpr int axes = vb::select_policies<>::axes_of<P>;
static_assert(axes<vb::transport::rc> == 1);
static_assert(axes<vb::completion::busy_poll> == 1);
static_assert(axes<vb::completion::event_driven> == 1);
static_assert(axes<vb::setup::descriptor> == 1);
static_assert(axes<vb::setup::cm> == 1);
static_assert(axes<vb::errors::throwing> == 1);
static_assert(axes<vb::errors::returning> == 1);
static_assert(axes<vb::signaling::every> == 1);
static_assert(axes<vb::signaling::one_in<2>> == 1);
static_assert(axes<vb::signaling::per_operation> == 1);
static_assert(axes<vb::posting::list> == 1);
static_assert(axes<vb::threading::single_owner> == 1);
static_assert(axes<vb::accounting::ledger> == 1);
static_assert(axes<vb::accounting::unchecked> == 1);
static_assert(axes<int> == 0);

// Policies are names: nothing is stored of them.
static_assert(std::is_empty_v<none>);
static_assert(std::is_empty_v<one_way>);
