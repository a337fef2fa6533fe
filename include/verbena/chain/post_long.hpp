// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <verbena/chain/post.hpp>
#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/view.hpp>

/// Requests that are divided: several messages, of which the last has the request's wr_id,
/// immediate and completion.
namespace verbena::chain {

/// A message of a request: bytes of one piece of its memory.
template <class Request, bool Last>
struct message_of {
  static constexpr bool carries_immediate = has_immediate(Request::what);
  static constexpr operation what = carries_immediate && !Last ? operation::write : Request::what;
  static constexpr std::size_t piece_count = 1;
  static constexpr bool one_sided = true;
  static constexpr bool addressed = false;
  static constexpr bool inline_only = false;
  static constexpr bool asks_signal = Request::asks_signal;
  static constexpr option asked = static_cast<option>(
      static_cast<unsigned>(Request::asked) &
      static_cast<unsigned>(Last ? option::fenced | option::solicited : option::fenced));
  using region = std::remove_cvref_t<decltype(std::declval<const Request&>().remote())>;

  template <std::size_t>
  const view<std::byte, Request::local_rights>& local() const noexcept {
    return memory;
  }
  const remote_region<std::byte, region::granted>& remote() const noexcept { return target; }
  auto operands() const noexcept { return whole.operands(); }
  std::uint32_t token() const noexcept { return whole.token(); }

  const Request& whole;
  view<std::byte, Request::local_rights> memory;
  remote_region<std::byte, region::granted> target;
};

template <class Request>
inline constexpr operation work_of<message_of<Request, false>> = operation::part;

/// The policies of a message that is not the last: it never asks for a completion.
template <class Policies>
struct for_parts : Policies {
  struct signaling {
    static constexpr bool signals(std::uint16_t& unsignaled, std::uint16_t window, bool) noexcept {
      if (window > 1) ++unsignaled;
      return false;
    }
  };
};

/// How many messages a request takes: a message has bytes of one piece.
template <class Request>
std::size_t messages_of(const queue_pair_state& state, const Request& request) noexcept {
  if constexpr (!divisible<Request>) return 1;
  if (size_of(request) <= state.max_message) return 1;
  const auto of = [&](const auto& memory) {
    return memory.size_bytes() / state.max_message +
           std::size_t{memory.size_bytes() % state.max_message != 0};
  };
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    return (std::size_t{0} + ... + of(request.template local<Index>()));
  }(std::make_index_sequence<Request::piece_count>{});
}

/// Posts one request message by message. What has entered of one that is refused is done all the
/// same, and retired by what is signaled next.
template <class Policies, class Request>
posted post_messages(queue_pair_state& state, const Request& request) {
  const std::size_t total = size_of(request);
  std::size_t done = 0;
  posted result;
  const auto post = [&]<bool Last>(const auto& memory, std::size_t at, std::size_t bytes) {
    using message = message_of<Request, Last>;
    const message part{request,
                       {{memory.bytes() + at, bytes}, memory.key(), memory.domain()},
                       {request.remote().address() + done, bytes, request.remote().key()}};
    using policies = std::conditional_t<Last, Policies, for_parts<Policies>>;
    return post_sends<policies>(state, part);
  };
  const auto post_piece = [&](const auto& memory) {
    for (std::size_t at = 0; at < memory.size_bytes();) {
      const std::size_t bytes = std::min<std::size_t>(state.max_message, memory.size_bytes() - at);
      const bool last = done + bytes == total;
      result = last ? post.template operator()<true>(memory, at, bytes)
                    : post.template operator()<false>(memory, at, bytes);
      if (!result) return false;
      at += bytes;
      done += bytes;
    }
    return true;
  };
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (void)(post_piece(request.template local<Index>()) && ...);
  }(std::make_index_sequence<Request::piece_count>{});
  if (!result && done != 0) state.unsignaled = std::max<std::uint16_t>(state.unsignaled, 1);
  return result;
}

/// Posts a chain that has requests longer than a message, if there is room for all of it.
template <class Policies, class... Requests>
[[gnu::cold, gnu::noinline]] posted post_long(queue_pair_state& state,
                                              const Requests&... requests) {
  errc why{};
  (void)(((why = judge<true>(state, requests)) != errc{}) || ...);
  const std::size_t messages = (messages_of(state, requests) + ...);
  constexpr auto refuse = refusal<&queue_pair_state::sends, Requests...>;
  if (why != errc{}) return refuse(state, sizeof...(Requests), why);
  if (messages > state.sends.capacity && !state.broken()) {
    return refuse(state, sizeof...(Requests), errc::capacity);
  }
  const auto needed = static_cast<std::uint32_t>(messages);
  if (!state.sends.has_room(needed)) return refuse(state, needed, errc::would_block);
  std::uint32_t entered = 0;
  posted result;
  const auto post = [&]<class Request>(const Request& request) {
    if constexpr (divisible<Request>) {
      const bool is_long = messages_of(state, request) > 1;
      result =
          is_long ? post_messages<Policies>(state, request) : post_sends<Policies>(state, request);
    } else {
      result = post_sends<Policies>(state, request);
    }
    if (result) ++entered;
    return bool{result};
  };
  (void)(post(requests) && ...);
  return posted{result.with_count(entered)};
}

}  // namespace verbena::chain
