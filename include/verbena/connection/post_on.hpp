// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mutex>
#include <string>

#include <verbena/chain/post.hpp>
#include <verbena/chain/prepared.hpp>
#include <verbena/connection/core_policies.hpp>
#include <verbena/verbs/result.hpp>

namespace verbena {

/// What can not be done on a queue pair, in words.
inline std::string shortcomings(const queue_pair_state& state) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  const std::string device = state.queue_pair->context->device->name;
  if (state.lacks(feature::immediates)) add(device + " has no immediate data");
  if (state.lacks(feature::atomics)) add(device + " has no atomics");
  if (state.lacks(feature::beyond_iwarp)) {
    add(device + " has no receives without memory and no fenced reads");
  }
  if (!state.broken() && state.receives.capacity == 0) add("its messages come to a receive_ring");
  if (state.read_pieces == 0) {
    add("no reads were agreed on: options::reads_asked here and reads_answered at the peer");
  }
  return text;
}

/// The sentence of a post that failed.
[[gnu::cold, gnu::noinline]] inline error post_error(const queue_pair_state& state, posted result) {
  if (state.queue_pair == nullptr) return {errc::moved_from, "post on a connection"};
  std::string what = "post on queue pair " + std::to_string(state.queue_pair->qp_num);
  if (result.count() != 0) what += ", " + std::to_string(result.count()) + " requests entered";
  if (result.failed_with(errc::message_too_long)) {
    what += " (1 to " + std::to_string(state.max_message) +
            " bytes can be sent at a time; a read or write may be divided())";
  }
  if (result.failed_with(errc::inline_too_long)) {
    what += " (of unregistered memory " + std::to_string(state.inline_limit) +
            " bytes can be sent at a time: see options::inline_bytes)";
  }
  if (result.failed_with(errc::short_receive)) {
    what += " (a datagram's receive holds 40 bytes beside the message)";
  }
  if (result.failed_with(errc::not_supported)) {
    what += " (" + shortcomings(state) + ")";
  }
  if (result.failed_with(errc::too_many_pieces)) {
    what += " (at most " + std::to_string(state.send_pieces) + " in a send or write, " +
            std::to_string(state.read_pieces) + " in a read, " +
            std::to_string(state.receive_pieces) + " in a receive)";
  }
  if (result.failed_with(errc::broken)) {
    what += " (" + make_error_code(state.failure).message() + ")";
  }
  if (result.failed_with(errc::capacity)) {
    what += " (the chain is longer than the queue, less the unsignaled requests at its end)";
  }
  return {result.error(), what};
}

/// Out of line, so that a post needs no room for the sentence.
template <class Errors>
[[gnu::cold, gnu::noinline]] posted report(const queue_pair_state& state, posted result) {
  if (!result.would_block()) Errors::failed(post_error(state, result));
  return result;
}

/// Posts under the threading policy's mutex and lets the errors policy react to a failure.
template <class Policies, class... Requests>
[[gnu::always_inline]] inline posted post_on(queue_pair_state& state,
                                             typename Policies::threading::mutex& mutex,
                                             const Requests&... requests) {
  posted result;
  {
    const std::lock_guard guard{mutex};
    result = chain::post<core_of<Policies>>(state, requests...);
  }
  if (result.count() == sizeof...(Requests)) [[likely]]
    return result;
  return report<typename Policies::errors>(state, result);
}

/// The same of a prepared chain.
template <class Policies, class... Shapes>
[[gnu::always_inline]] inline posted post_on(queue_pair_state& state,
                                             typename Policies::threading::mutex& mutex,
                                             prepared<core_of<Policies>, Shapes...>& chain) {
  posted result;
  {
    const std::lock_guard guard{mutex};
    result = chain::prepared_access::post(state, chain);
  }
  if (result.count() == sizeof...(Shapes)) [[likely]]
    return result;
  return report<typename Policies::errors>(state, result);
}

/// Judges and prepares a chain.
template <class Policies, class... Requests>
result<prepared<core_of<Policies>, shape_of<Requests>...>> prepare_on(const queue_pair_state& state,
                                                                      const Requests&... requests) {
  if (state.queue_pair == nullptr) return error{errc::moved_from, "preparing on a connection"};
  errc why{};
  (void)(((why = chain::judge(state, requests)) != errc{}) || ...);
  if (why != errc{}) {
    return post_error(state, {progress{0, chain::exactly<Requests...>(state, why)}})
        .within("preparing");
  }
  return chain::prepared_access::make<core_of<Policies>>(state, requests...);
}

}  // namespace verbena
