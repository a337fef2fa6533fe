// SPDX-License-Identifier: BSL-1.0
#include <verbena/chain/legal.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/memory/view.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/signaling/per_operation.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>

namespace vb = verbena;

namespace {

template <vb::role... Roles>
using local = vb::view<char, vb::grants_of<Roles...>>;
template <vb::role... Roles>
using remote = vb::remote_region<char, vb::remote_part(vb::grants_of<Roles...>)>;

template <class Memory>
using sending = decltype(vb::send{std::declval<Memory>()});
template <class Memory>
using receiving = decltype(vb::receive{std::declval<Memory>()});
template <class Memory, class Remote>
using reading = decltype(vb::read{std::declval<Memory>(), std::declval<Remote>()});
template <class Memory, class Remote>
using writing = decltype(vb::write{std::declval<Memory>(), std::declval<Remote>()});

/// Carries what its parameter says.
template <vb::operation... Carried>
struct only : vb::transport::uc {
  static constexpr bool carries(vb::operation of) noexcept { return ((of == Carried) || ...); }
};

using usual = vb::policies<>;
using choosing = vb::policies<vb::signaling::per_operation>;

}  // namespace

// What fills local memory needs memory that may be written (FC-17).
static_assert(vb::can_post<usual, receiving<local<vb::sink>>>);
static_assert(vb::can_post<usual, receiving<local<vb::remote_writable>>>);
static_assert(!vb::can_post<usual, receiving<local<vb::source>>>);
static_assert(!vb::can_post<usual, receiving<local<vb::remote_readable>>>);
static_assert(vb::can_post<usual, reading<local<vb::sink>, remote<vb::remote_readable>>>);
static_assert(!vb::can_post<usual, reading<local<vb::source>, remote<vb::remote_readable>>>);

// What is taken from memory needs no right.
static_assert(vb::can_post<usual, sending<local<vb::source>>>);
static_assert(vb::can_post<usual, sending<local<vb::sink>>>);
static_assert(vb::can_post<usual, writing<local<vb::source>, remote<vb::remote_writable>>>);

// A peer's region is used only as it grants (FC-26).
static_assert(!vb::can_post<usual, writing<local<vb::source>, remote<vb::remote_readable>>>);
static_assert(!vb::can_post<usual, reading<local<vb::sink>, remote<vb::remote_writable>>>);
static_assert(vb::can_post<
              usual, reading<local<vb::sink>, remote<vb::remote_readable, vb::remote_writable>>>);

// The transport says what it carries (FC-41).
using sends_only = vb::policies<only<vb::operation::send, vb::operation::receive>>;
static_assert(vb::can_post<sends_only, sending<local<vb::source>>>);
static_assert(vb::can_post<sends_only, receiving<local<vb::sink>>>);
static_assert(!vb::can_post<sends_only, writing<local<vb::source>, remote<vb::remote_writable>>>);
static_assert(!vb::can_post<sends_only, reading<local<vb::sink>, remote<vb::remote_readable>>>);

// Receives go to another queue than the rest.
static_assert(vb::can_post<usual, sending<local<vb::sink>>, sending<local<vb::sink>>>);
static_assert(!vb::can_post<usual, sending<local<vb::sink>>, receiving<local<vb::sink>>>);
static_assert(!vb::can_post<usual>);
static_assert(!vb::can_post<usual, int>);

// Only a connection whose requests choose takes one that has chosen, and never a receive.
using quiet = decltype(std::declval<sending<local<vb::source>>>().unsignaled());
using quiet_receive = decltype(std::declval<receiving<local<vb::sink>>>().unsignaled());
static_assert(!vb::can_post<usual, quiet>);
static_assert(vb::can_post<choosing, quiet>);
static_assert(!vb::can_post<choosing, quiet_receive>);

// Several pieces have the rights that all of them have.
using mixed = decltype(vb::receive{
    vb::pieces{std::declval<local<vb::sink>>(), std::declval<local<vb::source>>()}});
static_assert(!vb::can_post<usual, mixed>);
using all_sinks = decltype(vb::receive{
    vb::pieces{std::declval<local<vb::sink>>(), std::declval<local<vb::remote_writable>>()}});
static_assert(vb::can_post<usual, all_sinks>);

// FC-26: an atomic takes 8-byte objects, the right to it, and memory for the old value.
template <class T, class U, vb::rights Rights, vb::role Role = vb::sink>
using adding = decltype(vb::fetch_and_add{std::declval<vb::view<T, vb::grants_of<Role>>>(),
                                          std::declval<vb::remote_region<U, Rights>>(), 1});
static_assert(vb::can_post<usual, adding<std::uint64_t, std::uint64_t, vb::rights::remote_atomic>>);
static_assert(vb::can_post<usual, adding<double, std::int64_t, vb::rights::remote_atomic>>);
static_assert(
    !vb::can_post<usual, adding<std::uint64_t, std::uint32_t, vb::rights::remote_atomic>>);
static_assert(
    !vb::can_post<usual, adding<std::uint32_t, std::uint64_t, vb::rights::remote_atomic>>);
static_assert(!vb::can_post<usual, adding<std::uint64_t, std::uint64_t, vb::rights::remote_write>>);
static_assert(!vb::can_post<
              usual, adding<std::uint64_t, std::uint64_t, vb::rights::remote_atomic, vb::source>>);
