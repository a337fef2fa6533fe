// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include <verbena/chain/legal.hpp>
#include <verbena/chain/posted.hpp>
#include <verbena/connection/queue_pair_state.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/policy/posting.hpp>
#include <verbena/policy/posting/entries.hpp>
#include <verbena/verbs/call.hpp>

/// The way of a chain from the user's line to the provider. Inlined whole: no heap, no lock of
/// its own, no string. What happens when it does not work is out of line. Nothing here throws, but
/// what calls the provider is not noexcept: around a C call that costs clang a landing pad.
namespace verbena::chain {

/// Where the pieces of request I begin in the chain's array.
template <class... Requests>
constexpr std::size_t first_piece(std::size_t index) noexcept {
  const std::array<std::size_t, sizeof...(Requests)> counts{Requests::piece_count...};
  std::size_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += counts[i];
  return before;
}

/// What of a request's memory does not suit the queue pair, errc{} when all does. A piece of no
/// bytes is refused too: adapters read a scatter/gather entry of length 0 as 2^31 bytes.
template <class Request>
[[gnu::always_inline]] inline errc unfit(const queue_pair_state& state,
                                         const Request& request) noexcept {
  return std::apply(
      [&](const auto&... local) __attribute__((always_inline)) {
        if (((local.domain != state.domain) || ...)) return errc::foreign_domain;
        if (((local.size - 1 >= state.max_message) || ...)) return errc::message_too_long;
        const std::size_t total = (local.size + ...);
        if constexpr (sizeof...(local) > 1) {
          if (total > state.max_message) return errc::message_too_long;
        }
        if constexpr (Request::one_sided) {
          if (total > request.remote().size_bytes()) return errc::outside_region;
        }
        return errc{};
      },
      request.local());
}

/// Why a queue has no room. A queue pair that has failed has none. A chain that is longer than the
/// queue will never have it, nor will one that does not fit beside the unsignaled requests at the
/// end: what retires those is the next signal, which this chain would have to bring.
[[gnu::cold, gnu::noinline]] inline posted no_room(const queue_pair_state& state,
                                                   const work_queue_positions& queue,
                                                   std::uint32_t requests) noexcept {
  if (state.broken()) return {progress{0, errc::broken}};
  const std::uint32_t held =
      &queue == &state.sends ? std::min<std::uint32_t>(state.unsignaled, queue.outstanding()) : 0;
  const bool never = requests + held > queue.capacity;
  return {progress{0, never ? errc::capacity : errc::would_block}};
}

/// What a provider refused: the first `taken.count` requests have entered. Out of memory with
/// requests outstanding means that the provider's queue is fuller than the device said it may be.
[[gnu::cold, gnu::noinline]] inline posted partly(work_queue_positions& queue,
                                                  accepted taken) noexcept {
  queue.posted += taken.count;
  if (taken.error == ENOMEM && queue.outstanding() != 0) {
    return {progress{taken.count, errc::would_block}};
  }
  return {progress::system(taken.count, taken.error)};
}

/// As partly. The count of unsignaled sends has gone on for requests that did not enter, so it is
/// set to where the next send is signaled: never later than it should be.
[[gnu::cold, gnu::noinline]] inline posted partly_sent(queue_pair_state& state,
                                                       accepted taken) noexcept {
  state.unsignaled = static_cast<std::uint16_t>(state.signal_window - 1);
  return partly(state.sends, taken);
}

template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_sends(queue_pair_state& state,
                                                const Requests&... requests) {
  constexpr std::uint32_t count = sizeof...(Requests);
  if constexpr (Policies::accounting::checks) {
    if (!state.sends.has_room(count)) [[unlikely]]
      return no_room(state, state.sends, count);
    errc why{};
    if ((((why = unfit(state, requests)) != errc{}) || ...)) [[unlikely]]
      return {progress{0, why}};
  } else {
    assert(state.sends.has_room(count) && ((unfit(state, requests) == errc{}) && ...));
  }
  typename Policies::posting::template chain<count, (Requests::piece_count + ...)> work{
      state.queue_pair};
  const std::uint32_t position = state.sends.posted;
  std::uint16_t unsignaled = state.unsignaled;
  [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    (work.template add<Index, first_piece<Requests...>(Index)>(
         requests,
         work_request_id::make(Requests::what, state.owner, position + Index, requests.token())
             .word,
         Policies::signaling::signals(unsignaled, state.signal_window, Requests::asks_signal)),
     ...);
  }(std::index_sequence_for<Requests...>{});
  // Before the call, so that it need not be kept during it.
  state.unsignaled = unsignaled;
  const int value = work.submit(state.queue_pair);
  if (!work.complete(value)) [[unlikely]]
    return partly_sent(state, work.entered(value));
  state.sends.posted += count;
  return posted{count};
}

template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_receives(queue_pair_state& state,
                                                   const Requests&... requests) {
  constexpr std::uint32_t count = sizeof...(Requests);
  if constexpr (Policies::accounting::checks) {
    if (!state.receives.has_room(count)) [[unlikely]]
      return no_room(state, state.receives, count);
    errc why{};
    if ((((why = unfit(state, requests)) != errc{}) || ...)) [[unlikely]]
      return {progress{0, why}};
  } else {
    assert(state.receives.has_room(count) && ((unfit(state, requests) == errc{}) && ...));
  }
  std::array<ibv_recv_wr, count> work;
  std::array<ibv_sge, (Requests::piece_count + ...)> entries;
  const std::uint32_t position = state.receives.posted;
  const auto add = [&]<std::size_t Index, class Request>(const Request& request)
                       __attribute__((always_inline)) {
                         constexpr std::size_t first = first_piece<Requests...>(Index);
                         ibv_recv_wr& each = work[Index];
                         each.wr_id = work_request_id::make(operation::receive, state.owner,
                                                            position + Index, request.token())
                                          .word;
                         each.next = Index + 1 < count ? &work[Index + 1] : nullptr;
                         each.sg_list = entries.data() + first;
                         each.num_sge = static_cast<int>(Request::piece_count);
                         posting::write_entries(entries.data() + first, request.local());
                         state.receive_data[(position + Index) & state.receive_mask] =
                             Request::piece_count == 1 ? request.local()[0].data : nullptr;
                       };
  [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    (add.template operator()<Index>(requests), ...);
  }(std::index_sequence_for<Requests...>{});
  ibv_recv_wr* refused = nullptr;
  const int value = ibv_post_recv(state.queue_pair, work.data(), &refused);
  if (value != 0 || refused != nullptr) [[unlikely]] {
    const auto entered = count == 1 || refused == nullptr ? 0 : refused - work.data();
    return partly(state.receives,
                  {static_cast<std::uint32_t>(entered), verbs::refused_errno(value)});
  }
  state.receives.posted += count;
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
