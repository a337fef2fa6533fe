// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <verbena/chain/legal.hpp>
#include <verbena/chain/posted.hpp>
#include <verbena/connection/peer.hpp>
#include <verbena/connection/queue_pair_state.hpp>
#include <verbena/operation/atomic_target.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/policy/posting.hpp>
#include <verbena/policy/posting/entries.hpp>
#include <verbena/verbs/call.hpp>
#include <verbena/verbs/memory_uses.hpp>

/// The way of a chain from the user's line to the provider. Inlined whole: no heap, no lock of
/// its own, no string. What happens when it does not work is out of line. Nothing here throws, but
/// what calls the provider is not noexcept: around a C call that costs clang a landing pad.
namespace verbena::chain {

/// What a request needs of the device.
template <class Request>
constexpr feature needs_of() noexcept {
  constexpr operation what = Request::what;
  if (has_immediate(what)) return feature::immediates;
  if (is_atomic(what)) return feature::atomics;
  if (what == operation::receive && Request::piece_count == 0) return feature::beyond_iwarp;
  if (what == operation::read && has(Request::asked, option::fenced)) return feature::beyond_iwarp;
  return feature::none;
}
template <class Request>
inline constexpr feature needs = needs_of<Request>();

/// Whether memory is registered in another domain.
template <class Memory>
[[gnu::always_inline]] inline bool is_foreign(const Memory& memory, std::uint32_t domain) noexcept {
  if constexpr (is_unregistered<Memory>) return false;
  return memory.domain() != domain;
}

/// The bytes of all pieces.
template <class Request>
[[gnu::always_inline]] inline std::size_t size_of(const Request& request) noexcept {
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    return (std::size_t{0} + ... + request.template local<Index>().size_bytes());
  }(std::make_index_sequence<Request::piece_count>{});
}

/// Whether a request's data goes into the work request.
template <class Request>
[[gnu::always_inline]] inline bool goes_inline(const queue_pair_state& state,
                                               const Request& request) noexcept {
  if constexpr (Request::inline_only) return true;
  if constexpr (has(Request::asked, option::inlined)) {
    return size_of(request) <= state.inline_limit;
  }
  return false;
}

/// The longest scatter/gather entry: adapters read a length of 0 as 2^31 bytes, which is also why
/// a piece of no bytes is refused.
inline constexpr std::size_t longest_piece = std::size_t{1} << 31;

/// The longest message that a request can send.
template <class Request>
[[gnu::always_inline]] inline std::uint32_t longest_message(const queue_pair_state& state,
                                                            const Request& request) noexcept {
  if constexpr (Request::addressed) {
    return request.remote().max_message();
  } else {
    return state.max_message;
  }
}

/// A reason in a block of its own: else clang loads it on the way past, before it is asked for.
[[gnu::always_inline]] inline errc refused(errc why) noexcept {
#ifdef __clang__
  asm volatile("");
#endif
  return why;
}

/// Whether a request that is longer than a message goes as several.
template <class Request>
inline constexpr bool divisible = has(Request::asked, option::divided);

/// What of a request does not suit the queue pair, errc{} when all does; of any length, for one
/// that is divided.
template <bool AnyLength = false, class Request>
[[gnu::always_inline]] inline errc judge(const queue_pair_state& state,
                                         const Request& request) noexcept {
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    constexpr operation what = Request::what;
    constexpr bool receives = what == operation::receive;
    if constexpr (needs<Request> != feature::none) {
      if (state.lacks(needs<Request>)) [[unlikely]]
        return refused(errc::not_supported);
    }
    if constexpr (is_atomic(what)) {
      if (state.read_pieces == 0) [[unlikely]]
        return refused(errc::not_supported);
    } else if constexpr (what == operation::read) {
      // Where no reads were agreed on, refusal() says so: the number would be kept for it.
      if (Request::piece_count > state.read_pieces) [[unlikely]]
        return refused(Request::piece_count == 1 ? errc::not_supported : errc::too_many_pieces);
    } else if constexpr (Request::piece_count > 1) {
      if (Request::piece_count > (receives ? state.receive_pieces : state.send_pieces)) [[unlikely]]
        return refused(errc::too_many_pieces);
    }
    if ((is_foreign(request.template local<Index>(), state.domain) || ...)) [[unlikely]] {
      return refused(errc::foreign_domain);
    }
    if constexpr (Request::addressed) {
      if (request.remote().domain() != state.domain) [[unlikely]]
        return refused(errc::foreign_domain);
    }
    if constexpr (Request::inline_only) {
      if (size_of(request) > state.inline_limit) [[unlikely]]
        return refused(errc::inline_too_long);
    }
    if constexpr (is_atomic(what)) {
      if (request.template local<0>().size() == 0) [[unlikely]]
        return refused(errc::empty_piece);
      if (request.remote().size() == 0) [[unlikely]]
        return refused(errc::outside_region);
      if (request.remote().address() % atomic_size != 0) [[unlikely]]
        return refused(errc::misaligned);
      return errc{};
    }
    std::size_t most = receives ? longest_piece : longest_message(state, request);
    if (AnyLength && divisible<Request>) most = std::numeric_limits<std::size_t>::max();
    if (((request.template local<Index>().size_bytes() - 1 >= most) || ...)) [[unlikely]] {
      const bool empty = ((request.template local<Index>().size_bytes() == 0) || ...);
      return refused(empty ? errc::empty_piece : errc::message_too_long);
    }
    const std::size_t total = size_of(request);
    if (!receives && sizeof...(Index) > 1 && total > most) [[unlikely]] {
      return refused(errc::message_too_long);
    }
    if constexpr (Request::one_sided && Request::piece_count != 0) {
      if (total > request.remote().size_bytes()) [[unlikely]]
        return refused(errc::outside_region);
    }
    return errc{};
  }(std::make_index_sequence<Request::piece_count>{});
}

/// The same of a chain, which needs room first.
template <bool CallsBetween = false, class... Requests>
[[gnu::always_inline]] inline errc judge_chain(const queue_pair_state& state,
                                               const work_queue_positions& queue,
                                               const Requests&... requests) noexcept {
  if (!queue.has_room(sizeof...(Requests))) [[unlikely]]
    return errc::would_block;
  errc why{};
  (void)(((why = judge(state, requests)) != errc{}) || ...);
  // From here on memory is read again: sizes kept from their sum, beside the immediates that came
  // in registers, would only be spilled. A call does the same.
  constexpr bool sums = ((Requests::what != operation::receive) && ...);
  constexpr std::size_t kept = posting::piece_sum<Requests...> +
                               2 * (0 + ... + std::size_t{has_immediate(Requests::what)}) +
                               (0 + ... + std::size_t{Requests::addressed});
  if constexpr (!CallsBetween && sums && kept > 3) asm volatile("" : : : "memory");
  return why;
}

/// What is wrong with a chain that judge refuses, exactly: a read where the peers agreed on none
/// has too many pieces too.
template <class... Requests>
constexpr errc exactly(const queue_pair_state& state, errc why) noexcept {
  constexpr bool reads = ((Requests::what == operation::read) || ...);
  if (reads && why == errc::too_many_pieces && state.read_pieces == 0) return errc::not_supported;
  return why;
}

/// One of the two work queues of a queue pair.
using work_queue = work_queue_positions queue_pair_state::*;

/// The refusal of a chain, and why there is no room. A queue pair that has failed has none. A chain
/// that is longer than the queue will never have it, nor will one that does not fit beside the
/// unsignaled requests at the end: what retires those is the next signal, which this chain would
/// have to bring.
template <work_queue Queue, class... Requests>
[[gnu::cold, gnu::noinline]] posted refusal(const queue_pair_state& state, std::uint32_t requests,
                                            errc why) noexcept {
  if (why != errc::would_block) return {progress{0, exactly<Requests...>(state, why)}};
  if (state.broken()) return {progress{0, errc::broken}};
  const work_queue_positions& queue = state.*Queue;
  if (queue.capacity == 0) return {progress{0, errc::not_supported}};  // receives come to a ring
  std::uint32_t held = 0;
  if (Queue == &queue_pair_state::sends) {
    held = std::min<std::uint32_t>(state.unsignaled, queue.outstanding());
  }
  return {progress{0, requests + held > queue.capacity ? errc::capacity : errc::would_block}};
}

/// What a provider did not take whole. How much it took is in the id of the request it refused:
/// not in its place in the chain, which would have to be kept over the call. Out of memory (rxe's
/// ibv_wr_complete: of space) with requests outstanding means that its queue is fuller than the
/// device said it may be. `counted` are those that have been counted as posted already.
template <work_queue Queue>
[[gnu::cold, gnu::noinline]] posted partly(queue_pair_state& state, std::uint32_t requests,
                                           answer got, std::uint32_t counted) noexcept {
  work_queue_positions& queue = state.*Queue;
  const std::uint32_t first = queue.posted - counted;
  std::uint16_t entered = 0;
  if (got.refuses && requests > 1) {
    entered = static_cast<std::uint16_t>(work_request_id{got.refused}.position() - first);
  }
  queue.post(entered - counted);
  // Sends that did not enter have been counted. The next one is signaled, never later than due.
  if (Queue == &queue_pair_state::sends) {
    state.unsignaled = static_cast<std::uint16_t>(state.signal_window - 1);
  }
  const int number = verbs::refused_errno(got.value);
  if ((number == ENOMEM || number == ENOSPC) && queue.outstanding() != 0) {
    return {progress{entered, errc::would_block}};
  }
  return {progress::system(entered, number)};
}

#ifndef NDEBUG
/// Remembers what memory a chain uses, see verbs::memory_uses.
template <class... Requests>
void note_uses(const work_queue_positions& queue, const Requests&... requests) {
  std::array<verbs::memory_uses::use, posting::piece_sum<Requests...>> all;
  std::size_t at = 0;
  std::uint32_t position = queue.posted;
  const auto note = [&]<std::size_t... Index>(const auto& request, std::index_sequence<Index...>) {
    ((all[at++] = {position, request.template local<Index>().domain(),
                   static_cast<std::uint32_t>(request.template local<Index>().key())}),
     ...);
    ++position;
  };
  (note(requests, std::make_index_sequence<Requests::piece_count>{}), ...);
  verbs::memory_uses::of_process().add(queue, all);
}
#endif

/// Remembers where the old values of atomics will lie.
template <class... Requests>
[[gnu::always_inline]] inline void note_results(const queue_pair_state& state,
                                                std::uint32_t position,
                                                const Requests&... requests) noexcept {
  std::byte** const ring = state.memory_at + state.memory_mask + 1;
  const auto note = [&]<class Request>(const Request& request) __attribute__((always_inline)) {
    if constexpr (is_atomic(Request::what)) {
      ring[position & state.memory_mask] = request.template local<0>().bytes();
    }
    ++position;
  };
  (note(requests), ...);
}

/// The operation that a wr_id names.
template <class Request>
inline constexpr operation work_of = Request::what;

template <class Policies, class... Requests>
posted post_long(queue_pair_state& state, const Requests&... requests);

template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_sends(queue_pair_state& state,
                                                const Requests&... requests) {
  constexpr std::uint32_t count = sizeof...(Requests);
  // An ibv_qp_ex is called for each request: what would be kept over that is read again instead.
  constexpr bool calls_between = Policies::posting::uses_qp_ex;
  if constexpr ((divisible<Requests> || ...)) {
    if (((divisible<Requests> && size_of(requests) > state.max_message) || ...)) [[unlikely]]
      return post_long<Policies>(state, requests...);
  }
  if constexpr (Policies::accounting::checks) {
    const errc why = judge_chain<calls_between>(state, state.sends, requests...);
    if (why != errc{}) [[unlikely]]
      return refusal<&queue_pair_state::sends, Requests...>(state, count, why);
  } else {
    assert(judge_chain(state, state.sends, requests...) == errc{});
  }
#ifndef NDEBUG
  note_uses(state.sends, requests...);
#endif
  // Where another thread polls, a completion may come before the provider has returned.
  constexpr std::uint32_t counted = Policies::threading::any_thread ? count : 0;
  std::conditional_t<calls_between && counted == 0, const std::uint32_t&, const std::uint32_t>
      position = state.sends.posted;
  std::conditional_t<calls_between, std::uint16_t&, std::uint16_t> unsignaled = state.unsignaled;
  const auto label_of =
      [&]<std::size_t Index, class Request>(const Request& request) __attribute__((always_inline)) {
        std::uint16_t count_so_far = unsignaled;
        const bool signaled =
            Policies::signaling::signals(count_so_far, state.signal_window, Request::asks_signal);
        unsignaled = count_so_far;
        // Before the provider's call, so that it need not be kept during it.
        if (Index + 1 == count) {
          state.unsignaled = unsignaled;
          note_results(state, position, requests...);
        }
        const auto id =
            work_request_id::make(work_of<Request>, state.owner, position + Index, request.token());
        return label{id.word, signaled, goes_inline(state, request)};
      };
  if (counted != 0) state.sends.post(counted);
  const answer got = Policies::posting::post(state.queue_pair, label_of, requests...);
  // Whether a lone request was refused needs no telling; the constant for it g++ keeps over the
  // call.
  if (!got.complete()) [[unlikely]]
    return partly<&queue_pair_state::sends>(state, count, count == 1 ? answer{got.value} : got,
                                            counted);
  if (counted == 0) state.sends.post(count);
  return posted{count};
}

/// Remembers where messages will lie.
template <class... Requests>
[[gnu::always_inline]] inline void note_receives(const queue_pair_state& state,
                                                 std::uint32_t position,
                                                 const Requests&... requests) noexcept {
  std::byte** const ring = state.memory_at;  // as a store could change it, for all compilers know
  const auto note = [&]<class Request>(const Request& request) __attribute__((always_inline)) {
    std::byte*& place = ring[position++ & state.memory_mask];
    if constexpr (Request::piece_count == 1) {
      place = request.template local<0>().bytes();
    } else {
      place = nullptr;
    }
  };
  (note(requests), ...);
}

template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_receives(queue_pair_state& state,
                                                   const Requests&... requests) {
  constexpr std::uint32_t count = sizeof...(Requests);
  constexpr std::uint32_t prefix = Policies::transport::receive_prefix;
  if constexpr (Policies::accounting::checks) {
    errc why = judge_chain(state, state.receives, requests...);
    if (prefix != 0 && why == errc{} && ((size_of(requests) < prefix) || ...)) [[unlikely]]
      why = errc::short_receive;
    if (why != errc{}) [[unlikely]]
      return refusal<&queue_pair_state::receives>(state, count, why);
  } else {
    assert(judge_chain(state, state.receives, requests...) == errc{});
  }
#ifndef NDEBUG
  note_uses(state.receives, requests...);
#endif
  std::array<ibv_recv_wr, count> work;
  std::array<ibv_sge, posting::piece_sum<Requests...>> entries;
  const std::uint32_t position = state.receives.posted;
  constexpr std::uint32_t mark = prefix != 0 ? work_request_id::apart : 0;
  const auto add =
      [&]<std::size_t Index, class Request>(const Request& request) __attribute__((always_inline)) {
        constexpr std::size_t first = posting::first_piece<Requests...>(Index);
        ibv_recv_wr& each = work[Index];
        each.wr_id = work_request_id::make(operation::receive, state.owner | mark, position + Index,
                                           request.token())
                         .word;
        each.next = Index + 1 < count ? &work[Index + 1] : nullptr;
        each.sg_list = Request::piece_count == 0 ? nullptr : entries.data() + first;
        each.num_sge = static_cast<int>(Request::piece_count);
        posting::write_entries(entries.data() + first, request);
      };
  [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    (add.template operator()<Index>(requests), ...);
  }(std::index_sequence_for<Requests...>{});
  note_receives(state, position, requests...);
  constexpr std::uint32_t counted = Policies::threading::any_thread ? count : 0;
  if (counted != 0) state.receives.post(counted);
  ibv_recv_wr* stopped = nullptr;
  const int value = ibv_post_recv(state.queue_pair, work.data(), &stopped);
  const answer got = answer::from<count>(value, stopped);
  if (!got.complete()) [[unlikely]]
    return partly<&queue_pair_state::receives>(state, count, got, counted);
  if (counted == 0) state.receives.post(count);
  return posted{count};
}

/// Posts one chain; legality is decided here.
template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post(queue_pair_state& state, const Requests&... requests) {
  static_assert(legal_chain<Policies, Requests...>::value);
  if constexpr (((Requests::what == operation::receive) && ...)) {
    return post_receives<Policies>(state, requests...);
  } else {
    return post_sends<Policies>(state, requests...);
  }
}

}  // namespace verbena::chain

#include <verbena/chain/post_long.hpp>
