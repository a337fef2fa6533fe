// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <verbena/chain/post.hpp>
#include <verbena/operation/atomic_target.hpp>
#include <verbena/operation/immediate.hpp>
#include <verbena/operation/work_request_id.hpp>
#include <verbena/policy/posting/list.hpp>
#include <verbena/policy/posting/send_flags.hpp>

namespace verbena {

/// What is constant about a request, whatever its memory and numbers: the request's part in the
/// type of a prepared chain.
template <operation What, std::size_t Pieces = 1, option Asked = option::none>
struct shape {
  static constexpr operation what = What;
  static constexpr std::size_t piece_count = Pieces;
  static constexpr option asked = Asked;
  static constexpr bool asks_signal = !has(Asked, option::unsignaled);
};
template <class Request>
using shape_of = shape<Request::what, Request::piece_count,
                       Request::inline_only ? Request::asked | option::inlined : Request::asked>;

template <class Policies, class... Shapes>
class prepared;

namespace chain {
struct prepared_access;
}

/// A chain of sends, reads, writes or atomics whose work requests are kept, see
/// connection::prepare. What may vary from post to post is written here: tokens, immediates, and
/// the numbers of atomics, of request `Index`. Its memory is checked once and stays the same; it
/// may be the adapter's more than once at a time. A value, which may be copied and assigned, and
/// outlive the connection, but is of no use to a later one; one thread at a time.
template <class Policies, class... Shapes>
class prepared {
  template <std::size_t Index>
  using at = std::tuple_element_t<Index, std::tuple<Shapes...>>;

 public:
  static constexpr std::size_t size = sizeof...(Shapes);
  static constexpr std::size_t piece_sum = (std::size_t{0} + ... + Shapes::piece_count);

  prepared(const prepared& other) noexcept : held_{other.held_} { link(); }
  prepared& operator=(const prepared& other) noexcept {
    held_ = other.held_;
    link();
    return *this;
  }
  ~prepared() = default;

  /// Below 2^24; comes back with the completion.
  template <std::size_t Index = 0>
  prepared& token(std::uint32_t value) noexcept {
    assert(value < work_request_id::token_limit);
    held_.ids[Index] = work_request_id::make(at<Index>::what, held_.owner, 0, value).word;
    return *this;
  }

  template <std::size_t Index = 0>
    requires(has_immediate(at<Index>::what))
  prepared& immediate(std::uint32_t value) noexcept {
    held_.work[Index].imm_data = swapped_immediate(value);
    return *this;
  }

  template <std::size_t Index = 0>
    requires(at<Index>::what == operation::compare_and_swap)
  prepared& operands(std::uint64_t compare, std::uint64_t swap) noexcept {
    held_.work[Index].wr.atomic.compare_add = compare;
    held_.work[Index].wr.atomic.swap = swap;
    return *this;
  }
  template <std::size_t Index = 0>
    requires(at<Index>::what == operation::fetch_and_add)
  prepared& operand(std::uint64_t add) noexcept {
    held_.work[Index].wr.atomic.compare_add = add;
    return *this;
  }

 private:
  friend chain::prepared_access;

  struct contents {
    std::array<ibv_send_wr, size> work;
    std::array<ibv_sge, piece_sum> entries;
    std::array<std::uint64_t, size> ids;  ///< at position 0
    const queue_pair_state* state;        ///< tells living connections apart, the owner others
    std::uint32_t owner;
  };

  prepared() noexcept = default;

  /// The work requests refer to each other and to their entries.
  void link() noexcept {
    ibv_sge* entries = held_.entries.data();
    const std::array<std::size_t, size> pieces{Shapes::piece_count...};
    for (std::size_t i = 0; i < size; ++i) {
      held_.work[i].next = i + 1 < size ? &held_.work[i + 1] : nullptr;
      held_.work[i].sg_list = pieces[i] == 0 ? nullptr : entries;
      entries += pieces[i];
    }
  }

  contents held_{};
};

namespace chain {

/// Makes and posts prepared chains.
struct prepared_access {
  /// Of requests that have been judged.
  template <class Policies, class... Requests>
  static prepared<Policies, shape_of<Requests>...> make(const queue_pair_state& state,
                                                        const Requests&... requests) {
    static_assert(legal_chain<Policies, Requests...>::value);
    static_assert(((Requests::what != operation::receive) && ...),
                  "prepare() is for sends, reads, writes and atomics: post receives as they are");
    static_assert(std::is_same_v<typename Policies::posting, posting::list>,
                  "prepare() keeps work requests for ibv_post_send: it needs posting::list");
    static_assert(
        !Policies::transport::addressed,
        "prepare() is for connections that have one peer: a peer of transport::ud may go");
    prepared<Policies, shape_of<Requests>...> made;
    made.held_.owner = state.owner;
    made.held_.state = &state;
    posting::list::prepare(made.held_.work, made.held_.entries, requests...);
    std::size_t at = 0;
    const auto add = [&](const auto& request) {
      using request_type = std::remove_cvref_t<decltype(request)>;
      made.held_.ids[at] =
          work_request_id::make(request_type::what, state.owner, 0, request.token()).word;
      if (goes_inline(state, request)) made.held_.work[at].send_flags |= IBV_SEND_INLINE;
      ++at;
    };
    (add(requests), ...);
    made.link();
    return made;
  }

  template <class Policies, class... Shapes>
  [[gnu::always_inline]] static posted post(queue_pair_state& state,
                                            prepared<Policies, Shapes...>& chain) {
    constexpr std::uint32_t count = sizeof...(Shapes);
    auto& held = chain.held_;
    if constexpr (Policies::accounting::checks) {
      if (!state.sends.has_room(count)) [[unlikely]]
        return refusal<&queue_pair_state::sends>(state, count, errc::would_block);
      if (held.state != &state || held.owner != state.owner) [[unlikely]]
        return refusal<&queue_pair_state::sends>(state, count, errc::other_connection);
    } else {
      assert(state.sends.has_room(count));
      assert(held.state == &state && held.owner == state.owner &&
             "posted on another connection than prepared for");
    }
#ifndef NDEBUG
    note(state, held.entries, std::array<std::size_t, count>{Shapes::piece_count...});
#endif
    const std::uint32_t position = state.sends.posted;
    std::uint16_t unsignaled = state.unsignaled;
    [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
      (vary<Policies, Shapes, Index>(state, held, position + Index, unsignaled), ...);
    }(std::index_sequence_for<Shapes...>{});
    state.unsignaled = unsignaled;
    note_results<Shapes...>(state, held, position);
    constexpr std::uint32_t counted = Policies::threading::any_thread ? count : 0;
    if (counted != 0) state.sends.post(counted);
    ibv_send_wr* stopped = nullptr;
    const int value = ibv_post_send(state.queue_pair, held.work.data(), &stopped);
    const answer got = answer::from<count>(value, stopped);
    if (!got.complete()) [[unlikely]]
      return partly<&queue_pair_state::sends>(state, count, count == 1 ? answer{got.value} : got,
                                              counted);
    if (counted == 0) state.sends.post(count);
    return posted{count};
  }

 private:
  template <class Policies, class Shape, std::size_t Index>
  [[gnu::always_inline]] static void vary(const queue_pair_state& state, auto& held,
                                          std::uint32_t position,
                                          std::uint16_t& unsignaled) noexcept {
    ibv_send_wr& work = held.work[Index];
    work.wr_id = held.ids[Index] | (position & 0xffffU);
    const bool signaled =
        Policies::signaling::signals(unsignaled, state.signal_window, Shape::asks_signal);
    unsigned flags = signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
    if constexpr (posting::send_flags(Shape::asked) != 0) {
      flags |= posting::send_flags(Shape::asked);
    }
    // Whether it fits was seen when it was prepared.
    if constexpr (has(Shape::asked, option::inlined)) flags |= work.send_flags & IBV_SEND_INLINE;
    work.send_flags = flags;
  }

  template <class... Shapes>
  [[gnu::always_inline]] static void note_results(const queue_pair_state& state, const auto& held,
                                                  std::uint32_t position) noexcept {
    const ibv_sge* entry = held.entries.data();
    const auto note_one = [&]<class Shape>(Shape) __attribute__((always_inline)) {
      if constexpr (is_atomic(Shape::what)) {
        state.result_at(position) = reinterpret_cast<std::byte*>(entry->addr);
      }
      ++position;
      entry += Shape::piece_count;
    };
    (note_one(Shapes{}), ...);
  }

#ifndef NDEBUG
  /// As note_uses. Of unregistered memory the key is 0, which no region has.
  template <std::size_t Entries, std::size_t Count>
  static void note(const queue_pair_state& state, const std::array<ibv_sge, Entries>& entries,
                   const std::array<std::size_t, Count>& pieces) {
    std::array<verbs::memory_uses::use, Entries> all;
    std::size_t at = 0;
    for (std::size_t i = 0; i < Count; ++i) {
      for (std::size_t piece = 0; piece < pieces[i]; ++piece, ++at) {
        all[at] = {state.sends.posted + static_cast<std::uint32_t>(i), state.domain,
                   entries[at].lkey};
      }
    }
    verbs::memory_uses::of_process().add(state.sends, all);
  }
#endif
};

}  // namespace chain
}  // namespace verbena
