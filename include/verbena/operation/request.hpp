// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <verbena/memory/rights.hpp>
#include <verbena/operation/option.hpp>
#include <verbena/operation/pieces.hpp>
#include <verbena/operation/work_request_id.hpp>

namespace verbena {

class peer;

/// The remote end of a request that names none.
struct no_remote {};

/// The numbers of a request that has none.
struct no_operands {};

/// What all operations have: local pieces, a remote end, numbers to work with, a token that comes
/// back with the completion. Made in the call of post: what has a name there is referred to, not
/// copied, and read when it is posted.
template <template <class, class, class> class Operation, class Local, class Remote, class Options,
          class Operands = no_operands>
class request {
 public:
  using local_type = Local;
  using remote_type = Remote;
  static constexpr std::size_t piece_count = Local::count;
  static constexpr rights local_rights = Local::granted;
  /// Whether it says whom it is for.
  static constexpr bool addressed = std::is_same_v<std::remove_cvref_t<Remote>, verbena::peer>;
  static constexpr bool one_sided =
      !addressed && !std::is_same_v<std::remove_cvref_t<Remote>, no_remote>;
  static constexpr option asked = Options::asked;
  static constexpr bool asks_signal = !has(asked, option::unsignaled);
  /// Whether its data has to travel in the work request: some of it is registered nowhere.
  static constexpr bool inline_only = Local::has_unregistered;

  constexpr request(Local local, Remote remote, Operands operands, std::uint32_t token) noexcept
      : local_{local}, remote_{remote}, operands_{operands}, token_{token} {}

  template <std::size_t Index>
  [[gnu::always_inline]] constexpr const auto& local() const noexcept {
    return local_.template view<Index>();
  }
  constexpr const std::remove_reference_t<Remote>& remote() const noexcept { return remote_; }
  constexpr Operands operands() const noexcept { return operands_; }
  constexpr std::uint32_t token() const noexcept { return token_; }

  /// With a token of the user's, below 2^24: an index, say, of what the request belongs to.
  constexpr Operation<Local, Remote, Options> token(std::uint32_t value) const noexcept {
    assert(value < work_request_id::token_limit);
    return {local_, remote_, operands_, value};
  }

  /// For this peer, as each send on transport::ud must say. The peer is used until the completion.
  constexpr Operation<Local, const peer&, Options> to(const peer& receiver) const noexcept
    requires(!one_sided)
  {
    return {local_, receiver, operands_, token_};
  }
  void to(const peer&& temporary) const = delete;

  /// Without a completion of its own; for signaling::per_operation.
  constexpr auto unsignaled() const noexcept { return asking<option::unsignaled>(); }

  /// Begins once all reads and atomics posted before on this connection have completed, as what
  /// uses what they bring must (ibv_post_send(3), IBV_SEND_FENCE); on RC.
  constexpr auto fenced() const noexcept { return asking<option::fenced>(); }

  /// Wakes a peer that waits for solicited completions only (ibv_req_notify_cq(3)); for sends and
  /// writes with immediate.
  constexpr auto solicited() const noexcept { return asking<option::solicited>(); }

  /// In the work request where the data fits options::inline_bytes, else from its memory; then too
  /// the memory is the adapter's until the completion, as nobody tells which way it went.
  constexpr auto inlined() const noexcept { return asking<option::inlined>(); }

  /// As several messages where it is longer than one, with one completion, or failure, for all;
  /// for reads and writes. Each takes a place in the queue, and holds bytes of one piece of memory.
  /// The immediate is on the last. A read's completion then tells the size of its last.
  constexpr auto divided() const noexcept { return asking<option::divided>(); }

 private:
  template <option More>
  constexpr Operation<Local, Remote, with<Options::asked | More>> asking() const noexcept {
    return {local_, remote_, operands_, token_};
  }

  Local local_;
  [[no_unique_address]] Remote remote_;
  [[no_unique_address]] Operands operands_;
  std::uint32_t token_;
};

}  // namespace verbena
