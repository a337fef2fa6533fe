// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <verbena/soft/complete.hpp>
#include <verbena/soft/outcome.hpp>
#include <verbena/soft/receive.hpp>

/// The peer's half of what uses up a receive: sends, and writes with an immediate. Everything here
/// runs under the sending queue pair's lock.
namespace verbena::soft {

inline constexpr std::uint32_t grh_bytes = 40;

/// RoCE v2 over IPv4: the IP header stands in the second half, the first is undefined.
inline void make_grh(std::array<std::byte, grh_bytes>& into, bool garbage) noexcept {
  into.fill(garbage ? std::byte{0xa5} : std::byte{0});
  constexpr std::array<std::uint8_t, 20> header{0x45, 0, 0,   0, 0, 0, 0x40, 0, 64, 17,
                                                0,    0, 127, 0, 0, 1, 127,  0, 0,  1};
  for (std::size_t i = 0; i < header.size(); ++i) into[20 + i] = std::byte{header[i]};
}

/// Where a receive is taken from.
struct receive_source {
  receive_queue_entry& queue;
  const ring_view& ring;
};

/// The region that a piece of the receive taken lies in, if it may be written: it is of the domain
/// of the receive queue, which if shared may have another than the queue pair.
[[gnu::always_inline]] inline region_view sink(const errand& on, const receive_source& from,
                                               const shared_piece& piece) noexcept {
  const region_view found = find_of(on.here, on.owner, piece.key, false, on.from.sink);
  const bool may =
      found.permits(from.queue.domain.load(), piece.address, piece.length, IBV_ACCESS_LOCAL_WRITE);
  return may ? found : region_view{};
}

/// Lets the completion carry the message to the first piece of the receive. Where the peer can
/// reach that memory it does not: a write, read or atomic after the message would be before it.
[[gnu::always_inline]] inline bool load(const errand& on, const receive_source& from,
                                        completion& by) noexcept {
  constexpr int remote =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  const shared_piece& into = on.from.receive.listed[0];
  const region_view region = sink(on, from, into);
  if (!region || (region.access & remote) != 0) return false;
  by.carries = true;
  by.place = into.address;
  by.key = into.key;
  if (on.local.size() == 1) [[likely]] {
    by.bytes = words_of(on.local[0].data, on.local[0].length);
    return true;
  }
  std::array<std::byte, carried_limit> together{};
  std::byte* to = together.data();
  for (const local_piece& each : on.local) {
    copy_small(to, each.data, each.length);
    to += each.length;
  }
  by.bytes = words_of(together.data(), on.length);
  return true;
}

/// Copies the message into the pieces of the receive. `gone`: its process has died meanwhile.
[[gnu::noinline]] inline ibv_wc_status scatter(const errand& on, const receive_source& queue,
                                               bool with_grh, cause& why, bool& gone) {
  std::array<std::byte, grh_bytes> grh{};
  std::span<local_piece> source{on.from.local.data(), on.local.size()};
  if (with_grh) {  // there is room for it before the rest, which moves up
    make_grh(grh, on.here.knobs.undefined_grh != 0);
    source = {on.from.local.data(), on.local.size() + 1};
    std::copy_backward(source.begin(), source.end() - 1, source.end());
    source[0] = {grh.data(), grh.size()};
  }
  std::size_t from = 0;
  std::size_t at = 0;
  for (const shared_piece& into : on.from.receive.pieces()) {
    if (from == source.size()) break;
    const region_view region = sink(on, queue, into);
    if (!region) return IBV_WC_LOC_PROT_ERR;
    for (std::uint64_t filled = 0; filled < into.length && from < source.size();) {
      const std::size_t part =
          std::min<std::size_t>(into.length - filled, source[from].length - at);
      const reached how = part == 0 ? reached::yes
                                    : transfer(on.here, region, into.address + filled,
                                               source[from].data + at, part, true);
      if (how != reached::yes) {
        why = cause_of(how);
        gone = how == reached::gone && !on.here.fabric->alive_now(on.owner);
        return IBV_WC_LOC_PROT_ERR;
      }
      filled += part;
      at += part;
      if (at == source[from].length) {
        ++from;
        at = 0;
      }
    }
  }
  return IBV_WC_SUCCESS;
}

/// Completes the receive taken and gives its slot back, in this order: whoever dies in between
/// leaves a receive that says whether it has been told of.
[[gnu::always_inline]] inline void tell_receive(const errand& on, const receive_source& from,
                                                completion& what) noexcept {
  const taken_receive& taken = on.from.receive;
  what.wr_id = taken.wr_id;
  what.told = &taken.slot->told;
  complete_there(on.here, on.from, on.owner, on.to.completion_queue.load(), what);
  taken.finish();
  move_taken(on.here, from.queue, from.ring, taken);
}

[[gnu::cold, gnu::noinline]] inline void tell_failed_receive(const errand& on,
                                                             const receive_source& from,
                                                             ibv_wc_status status,
                                                             cause why) noexcept {
  completion what;
  what.why = why;
  what.status = status;
  what.opcode = IBV_WC_RECV;
  what.queue_pair = on.to.number.load();
  tell_receive(on, from, what);
}

[[gnu::cold, gnu::noinline]] inline outcome not_taken(const errand& on, taking why,
                                                      const receive_source& from) noexcept {
  if (why == taking::gone) return on.silence();
  if (!on.is_reliable()) return {};
  if (why == taking::empty) return {outcome::not_ready, IBV_WC_SUCCESS, 0};
  tell_failed_receive(on, from, IBV_WC_LOC_LEN_ERR, cause::unsaid);
  return on.refused(IBV_WC_REM_INV_REQ_ERR);
}

/// The ring of receive queue `index` of the peer.
[[gnu::always_inline]] inline const ring_view& ring_of_peer(const errand& on,
                                                            const receive_queue_entry& of) {
  return look_again(*on.here.fabric, of.ring, on.owner, on.from.peer_receives);
}

/// Takes a receive of the peer's, fills it with the local memory, and completes it with `what`,
/// whose other fields are filled in here.
[[gnu::always_inline]] inline outcome deliver(const errand& on, completion& what) {
  const std::uint32_t index = on.to.receive_queue.load();
  if (index >= receive_queue_limit) return on.silence();
  receive_queue_entry& queue = on.here.fabric->shared().receive_queues[index];
  const receive_source source{queue, ring_of_peer(on, queue)};
  taken_receive& into = on.from.receive;
  const bool with_grh = (what.flags & IBV_WC_GRH) != 0;
  const std::uint64_t needed = what.byte_length;
  what.queue_pair = on.to.number.load();
  const taking taken =
      take_receive(on.here, queue, source.ring, what.queue_pair, needed, on.is_reliable(), into);
  if (taken != taking::got) [[unlikely]]
    return not_taken(on, taken, source);
  if (needed != 0) {
    const bool is_small = needed <= carried_limit && into.listed[0].length >= needed;
    cause why = cause::unsaid;
    bool gone = false;
    const bool is_carried = is_small && !with_grh && load(on, source, what);
    const ibv_wc_status status =
        is_carried ? IBV_WC_SUCCESS : scatter(on, source, with_grh, why, gone);
    if (status != IBV_WC_SUCCESS) [[unlikely]] {
      if (gone) return on.silence();
      tell_failed_receive(on, source, status, why);
      return on.refused(IBV_WC_REM_OP_ERR, why);
    }
  }
  tell_receive(on, source, what);
  return {};
}

/// Takes a receive of the peer's, does what it tells of, `put`, and completes it with `what`.
/// Without a receive a reliable queue pair does nothing of it, another all but the completion.
template <class Put>
[[gnu::noinline]] outcome notify(const errand& on, completion& what, Put&& put) {
  const std::uint32_t index = on.to.receive_queue.load();
  if (index >= receive_queue_limit) return on.silence();
  receive_queue_entry& queue = on.here.fabric->shared().receive_queues[index];
  const receive_source source{queue, ring_of_peer(on, queue)};
  taken_receive& into = on.from.receive;
  what.queue_pair = on.to.number.load();
  const taking taken =
      take_receive(on.here, queue, source.ring, what.queue_pair, 0, on.is_reliable(), into);
  if (taken != taking::got && on.is_reliable()) return not_taken(on, taken, source);
  const reached how = put();
  if (how != reached::yes) {
    if (taken == taking::got) into.put_back();  // first: the peer may flush it at once
    return on.failed_to_reach(how);
  }
  if (taken == taking::got) tell_receive(on, source, what);
  return {};
}

}  // namespace verbena::soft
