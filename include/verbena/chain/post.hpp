// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <verbena/chain/legal.hpp>
#include <verbena/chain/posted.hpp>
#include <verbena/connection/queue_pair_state.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/policy/posting.hpp>
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

/// Whether lengths and domain of a request suit the queue pair. A piece of no bytes is refused
/// too: adapters read a scatter/gather entry of length 0 as 2^31 bytes.
template <class Request>
[[gnu::always_inline]] inline bool suits(const queue_pair_state& state,
                                         const Request& request) noexcept {
  std::size_t total = 0;
  bool good = true;
  for (std::size_t i = 0; i < Request::piece_count; ++i) {
    const piece& local = request.local()[i];
    total += local.size;
    good &= local.domain == state.domain;
    good &= local.size - 1 < state.max_message;
  }
  if constexpr (Request::piece_count > 1) good &= total <= state.max_message;
  if constexpr (Request::one_sided) good &= total <= request.remote().size_bytes();
  return good;
}

/// Why a chain did not pass the checks. Takes the requests by value: a reference would have them
/// written to memory on the way that succeeds.
template <class... Requests>
[[gnu::cold, gnu::noinline]] posted refusal(const queue_pair_state& state,
                                            const work_queue_positions& queue,
                                            Requests... requests) noexcept {
  if (state.broken()) return {progress{0, errc::broken}};
  errc why = errc::would_block;
  const auto judge = [&](const auto& request) {
    std::size_t total = 0;
    for (const piece& local : request.local()) {
      if (local.domain != state.domain) why = errc::foreign_domain;
      if (local.size == 0) why = errc::message_too_long;
      total += local.size;
    }
    if (total > state.max_message) why = errc::message_too_long;
    if constexpr (std::remove_cvref_t<decltype(request)>::one_sided) {
      if (total > request.remote().size_bytes()) why = errc::outside_region;
    }
  };
  (judge(requests), ...);
  if (why == errc::would_block && sizeof...(Requests) > queue.capacity) why = errc::capacity;
  return {progress{0, why}};
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

template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_sends(queue_pair_state& state,
                                                const Requests&... requests) {
  constexpr std::uint32_t count = sizeof...(Requests);
  if constexpr (Policies::accounting::checks) {
    if (!(state.sends.has_room(count) && (suits(state, requests) && ...))) [[unlikely]] {
      return refusal(state, state.sends, requests...);
    }
  } else {
    assert(state.sends.has_room(count) && (suits(state, requests) && ...));
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
  const accepted taken = work.submit(state.queue_pair);
  if (taken.error != 0) [[unlikely]] {
    const std::array<bool, count> asked{Requests::asks_signal...};
    for (std::uint32_t i = 0; i < taken.count; ++i) {
      (void)Policies::signaling::signals(state.unsignaled, state.signal_window, asked[i]);
    }
    return partly(state.sends, taken);
  }
  state.sends.posted = position + count;
  state.unsignaled = unsignaled;
  return posted{count};
}

template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_receives(queue_pair_state& state,
                                                   const Requests&... requests) {
  constexpr std::uint32_t count = sizeof...(Requests);
  if constexpr (Policies::accounting::checks) {
    if (!(state.receives.has_room(count) && (suits(state, requests) && ...))) [[unlikely]] {
      return refusal(state, state.receives, requests...);
    }
  } else {
    assert(state.receives.has_room(count) && (suits(state, requests) && ...));
  }
  std::array<ibv_recv_wr, count> work;
  std::array<ibv_sge, (Requests::piece_count + ...)> entries;
  const std::uint32_t position = state.receives.posted;
  const auto add = [&]<std::size_t Index, class Request>(const Request& request)
                       __attribute__((always_inline)) {
                         constexpr std::size_t first = first_piece<Requests...>(Index);
                         constexpr std::size_t pieces = Request::piece_count;
                         ibv_recv_wr& each = work[Index];
                         each.wr_id = work_request_id::make(operation::receive, state.owner,
                                                            position + Index, request.token())
                                          .word;
                         each.next = Index + 1 < count ? &work[Index + 1] : nullptr;
                         each.sg_list = entries.data() + first;
                         each.num_sge = static_cast<int>(pieces);
                         for (std::size_t i = 0; i < pieces; ++i) {
                           const piece& local = request.local()[i];
                           entries[first + i].addr = reinterpret_cast<std::uintptr_t>(local.data);
                           entries[first + i].length = static_cast<std::uint32_t>(local.size);
                           entries[first + i].lkey = static_cast<std::uint32_t>(local.key);
                         }
                         state.receive_data[(position + Index) & state.receive_mask] =
                             pieces == 1 ? request.local()[0].data : nullptr;
                       };
  [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    (add.template operator()<Index>(requests), ...);
  }(std::index_sequence_for<Requests...>{});
  ibv_recv_wr* refused = nullptr;
  const int value = ibv_post_recv(state.queue_pair, work.data(), &refused);
  if (value != 0 || refused != nullptr) [[unlikely]] {
    const auto entered = refused == nullptr ? 0 : refused - work.data();
    return partly(state.receives, {static_cast<std::uint32_t>(entered),
                                   value == 0 ? EINVAL : verbs::returned_errno(value)});
  }
  state.receives.posted = position + count;
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
