// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/rights.hpp>
#include <verbena/operation/atomic_target.hpp>
#include <verbena/operation/legality.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

template <class T>
inline constexpr bool is_remote_region = false;
template <class T, rights Rights>
inline constexpr bool is_remote_region<remote_region<T, Rights>> = true;

/// Whether a request has the members of an operation of this library.
template <class Request>
concept work_request = requires {
  { Request::what } -> std::convertible_to<operation>;
  { Request::piece_count } -> std::convertible_to<std::size_t>;
  { Request::local_rights } -> std::convertible_to<rights>;
  { Request::asked } -> std::convertible_to<option>;
  { Request::addressed } -> std::convertible_to<bool>;
};

template <work_request Request>
constexpr rights remote_rights_of() noexcept {
  if constexpr (Request::one_sided) {
    return std::remove_cvref_t<decltype(std::declval<Request>().remote())>::granted;
  } else {
    return rights{};
  }
}

/// Why a request can not work on a connection.
enum class objection {
  none,
  transport,          ///< does not carry the operation
  local_right,        ///< the local memory may not be written
  remote_right,       ///< the peer's region does not grant what the operation does
  not_eight_bytes,    ///< an atomic on objects of another size, or with several results
  receive_completes,  ///< a receive that shall not be signaled
  policy_signals,     ///< the signaling policy does not ask the request
  fence,              ///< on a transport or an operation without
  solicited,          ///< what gives the peer no completion
  inlined,            ///< what does not take its data from local memory
  divided,            ///< what can only be one message
  no_peer,            ///< a send that does not say whom it is for
  peer,               ///< a peer named where there is one already, or for a receive
};

/// The first objection to a request on a connection with these policies. The rules stand here and
/// in the tables of legality.hpp, nowhere else.
template <work_request Request, class Policies>
constexpr objection objection_to() noexcept {
  constexpr operation what = Request::what;
  constexpr legality::operation_rules rules = legality::rules_of(what);
  if (!Policies::transport::carries(what)) return objection::transport;
  if (Request::inline_only && !rules.inlined) return objection::inlined;
  if (rules.fills_local && !allows(Request::local_rights, rights::local_write)) {
    return objection::local_right;
  }
  if (!allows(remote_rights_of<Request>(), rules.remote)) return objection::remote_right;
  if constexpr (is_atomic(what)) {
    if (!fits_atomic<typename Request::local_type, typename Request::remote_type>) {
      return objection::not_eight_bytes;
    }
  }
  const bool must_name = Policies::transport::addressed && what != operation::receive;
  if (must_name && !Request::addressed) return objection::no_peer;
  if (Request::addressed && !must_name) return objection::peer;
  if (!Request::asks_signal && what == operation::receive) return objection::receive_completes;
  if (!Request::asks_signal && !Policies::signaling::by_request) return objection::policy_signals;
  if (has(Request::asked, option::fenced) && !Policies::transport::fences(what)) {
    return objection::fence;
  }
  if (has(Request::asked, option::solicited) && !rules.solicited) return objection::solicited;
  if (has(Request::asked, option::inlined) && !rules.inlined) return objection::inlined;
  if (has(Request::asked, option::divided) && !rules.divided) return objection::divided;
  return objection::none;
}

/// Refuses an operation that can not work on a connection with these policies, in one sentence.
/// `post` instantiates it; can_post is its twin for `requires`.
template <class Request, class Policies>
struct legal {
  static constexpr operation what = Request::what;
  static constexpr objection found = objection_to<Request, Policies>();

  static_assert(found != objection::transport || what != operation::read,
                "READ needs transport::rc; uc carries send and write, ud carries send");
  static_assert(found != objection::transport || what != operation::compare_and_swap,
                "COMPARE_AND_SWAP needs transport::rc; uc carries send and write, ud carries send");
  static_assert(found != objection::transport || what != operation::fetch_and_add,
                "FETCH_AND_ADD needs transport::rc; uc carries send and write, ud carries send");
  static_assert(found != objection::transport || what != operation::write,
                "WRITE needs transport::rc or uc; ud carries send");
  static_assert(found != objection::transport || what != operation::write_with_immediate,
                "WRITE_WITH_IMMEDIATE needs transport::rc or uc; ud carries send");
  static_assert(found != objection::transport || legality::rules_of(what).remote != rights{},
                "this transport does not carry the operation: see its carries()");
  static_assert(found != objection::local_right,
                "RECEIVE, READ and atomics write to their local memory: give it the role sink, "
                "remote_writable or remote_atomic instead of source or remote_readable");
  static_assert(
      found != objection::remote_right || what != operation::read,
      "READ needs a remote region with the right remote_read: its owner must give it the role "
      "remote_readable");
  static_assert(
      found != objection::remote_right ||
          !(what == operation::write || what == operation::write_with_immediate),
      "WRITE needs a remote region with the right remote_write: its owner must give it the role "
      "remote_writable");
  static_assert(
      found != objection::remote_right || !is_atomic(what),
      "an atomic needs a remote region with the right remote_atomic: its owner must give it the "
      "role remote_atomic");
  static_assert(
      found != objection::not_eight_bytes,
      "an atomic changes one object of 8 bytes and gives the old one to local memory of one piece: "
      "both need elements of 8 bytes, such as std::uint64_t");
  static_assert(
      found != objection::policy_signals,
      "unsignaled() needs signaling::per_operation: this connection's policy chooses itself");
  static_assert(found != objection::receive_completes,
                "a RECEIVE always completes: unsignaled() is for send, read and write");
  static_assert(found != objection::fence || what == operation::receive,
                "fenced() needs transport::rc: uc and ud have no reads and atomics to wait for");
  static_assert(found != objection::fence || what != operation::receive,
                "fenced() is for what is sent: a RECEIVE waits for the peer alone");
  static_assert(found != objection::solicited,
                "solicited() is for SEND, SEND_WITH_IMMEDIATE and WRITE_WITH_IMMEDIATE: nothing "
                "else gives the peer a completion");
  static_assert(found != objection::inlined,
                "inlined() and unregistered memory are for sends and writes: what is received, "
                "read or swapped needs registered memory");
  static_assert(
      found != objection::divided,
      "divided() is for READ, WRITE and WRITE_WITH_IMMEDIATE: anything else is one message");
  static_assert(
      found != objection::no_peer,
      "transport::ud is connected with nobody: say whom a send is for, send(...).to(peer)");
  static_assert(found != objection::peer || what == operation::receive,
                "to(peer) is for transport::ud: on rc and uc a connection has one peer");
  static_assert(found != objection::peer || what != operation::receive,
                "to(peer) is for sends: a RECEIVE takes the message of anybody");
  static_assert(found == objection::none);
};

/// Whether every operation of a post is legal on a connection with these policies, and all of
/// them go to the same queue.
template <class Policies, class... Requests>
concept can_post = (work_request<Requests> && ...) && sizeof...(Requests) > 0 &&
                   (((Requests::what == operation::receive) && ...) ||
                    ((Requests::what != operation::receive) && ...)) &&
                   ((objection_to<Requests, Policies>() == objection::none) && ...);

/// Instantiates legal for each request, and says why receives and sends do not mix.
template <class Policies, class... Requests>
struct legal_chain {
  static_assert(sizeof...(Requests) > 0, "post needs at least one operation");
  static_assert((work_request<Requests> && ...),
                "post takes operations: send, receive, read or write, those with immediate, and "
                "atomics");
  static_assert(((Requests::what == operation::receive) && ...) ||
                    ((Requests::what != operation::receive) && ...),
                "receives go to another queue than sends, reads and writes: use one post for each");
  static constexpr bool value = (sizeof(legal<Requests, Policies>) + ...) != 0;
};

}  // namespace verbena
