// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <verbena/soft/deliver.hpp>
#include <verbena/soft/flush.hpp>
#include <verbena/soft/memory.hpp>
#include <verbena/soft/receive.hpp>
#include <verbena/soft/sleep.hpp>
#include <verbena/verbs/timers.hpp>

/// Carrying out send requests: the side that posts, polls or waits does the work of both ends.
/// Everything here runs under the queue pair's lock.
namespace verbena::soft {

/// The queue pair that `of` is connected to, if it is of this device. It is not destroyed as long
/// as the lock of `of` is held.
inline queue_pair* peer_here(const context& here, const queue_pair& of) noexcept {
  if (of.type == IBV_QPT_UD) return nullptr;
  const std::uint32_t number = of.attributes.dest_qp_num;
  const queue_pair_entry& entry = here.fabric->shared().queue_pairs[number % queue_pair_limit];
  // First: who destroys it takes its number away, then waits for those who may have seen it.
  if (entry.number.load() != number) return nullptr;
  queue_pair* const found = here.queue_pairs[number % queue_pair_limit].load();
  return found != nullptr && found->native.qp_base.qp_num == number ? found : nullptr;
}

/// Whether something is posted to receive on a queue pair of this process.
inline bool has_receive(const queue_pair& of) noexcept {
  const receive_queue& in = of.shared_receives == nullptr ? of.receives : of.shared_receives->queue;
  return look_for_receive(*in.entry, {in.slots, in.mask, in.stride}) == taking::got;
}

class requester {
 public:
  requester(context& here, queue_pair& of) noexcept : here_{here}, pair_{of}, on_{*here.fabric} {}

  /// Takes a new request in. It is carried out at once, from where it stands, if nothing waits
  /// before it; one that has to wait is kept. Then run().
  [[gnu::always_inline]] void take(const send_request& request) {
    const bool is_next = pair_.started == pair_.posted++;
    if (is_next && state() == IBV_QPS_RTS && attempt(request)) [[likely]]
      return;
    keep(request);
  }

  /// The same with the knob zero_length_2g: pieces of no length have 2^31 bytes.
  [[gnu::cold, gnu::noinline]] void take_stretched(const send_request& request) {
    ++pair_.posted;
    keep(request);
    if ((request.flags & IBV_SEND_INLINE) != 0) return;
    const std::size_t first =
        (pair_.posted - 1) % pair_.requests.size() * pair_.granted.max_send_sge;
    for (ibv_sge& each : std::span{pair_.piece_store}.subspan(first, request.pieces.size())) {
      if (each.length == 0) each.length = 1U << 31;
    }
  }

  /// Takes a new request in for run().
  void keep(const send_request& request) {
    const std::size_t place = (pair_.posted - 1) % pair_.requests.size();
    send_request& kept = pair_.requests[place];
    kept = request;
    ibv_sge* const pieces = pair_.piece_store.data() + place * pair_.granted.max_send_sge;
    kept.pieces = {pieces, request.pieces.size()};
    if ((request.flags & IBV_SEND_INLINE) == 0) {
      std::copy(request.pieces.begin(), request.pieces.end(), pieces);
      return;
    }
    std::byte* into = pair_.inline_store.data() + place * pair_.granted.max_inline_data;
    for (std::size_t i = 0; i < request.pieces.size(); ++i) {
      const ibv_sge& each = request.pieces[i];
      pieces[i] = {reinterpret_cast<std::uintptr_t>(into), each.length, 0};
      if (each.length != 0)
        std::memcpy(into, reinterpret_cast<const std::byte*>(each.addr), each.length);
      into += each.length;
    }
  }

  /// Carries out what can be; what has to wait is looked at again when something polls or sleeps.
  void run() {
    while (pair_.started != pair_.posted) {
      const send_request& request = pair_.requests[pair_.started % pair_.requests.size()];
      const ibv_qp_state now = state();
      if (now == IBV_QPS_ERR || now == IBV_QPS_SQE) {
        finish(request, {outcome::done, IBV_WC_WR_FLUSH_ERR, 0});
        continue;
      }
      if (now != IBV_QPS_RTS) break;
      if (pair_.again_at != 0 && now_ns() < pair_.again_at && !has_just_come()) return wait(true);
      (void)attempt(request);
    }
    wait(false);
    flush{here_, pair_}.receives();
  }

 private:
  ibv_qp_state state() const noexcept { return state_of(*pair_.entry); }

  /// Whether the request has come to an end, good or bad. If not, it is tried at again_at.
  [[gnu::noinline]] bool attempt(const send_request& request) {
    pair_.again_at = 0;
    const outcome ended = carry_out(request);
    if (ended.what == outcome::done) [[likely]] {
      pair_.tries = 0;
      pair_.not_ready_tries = 0;
      finish(request, ended);
      return true;
    }
    const bool not_ready = ended.what == outcome::not_ready;
    if (try_later(not_ready)) return false;
    finish(request,
           {outcome::done, not_ready ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR, 0});
    return true;
  }

  /// Whether the receive that is waited for has been posted while nobody knew that it is.
  bool has_just_come() noexcept {
    if (!pair_.lacks_receive || pair_.waits) return false;
    count_waiting(true);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as is in req_notify_cq()
    const queue_pair* const peer = peer_here(here_, pair_);
    return peer != nullptr && has_receive(*peer);
  }

  void wait(bool waits) noexcept {
    // Who sleeps for its receives alone has to wake for its sends too.
    for (const completion_queue* each : {pair_.send_queue, pair_.receive_completions}) {
      if (waits && each->native.channel != nullptr)
        set_timer(channel::of(each->native.channel), pair_.again_at);
    }
    count_waiting(waits);
  }
  void count_waiting(bool waits) noexcept {
    if (pair_.waits == waits) return;
    pair_.waits = waits;
    pair_.send_queue->blocked.fetch_add(waits ? 1U : ~0U);
    here_.waiting.fetch_add(waits ? 1U : ~0U);
  }

  [[gnu::cold, gnu::noinline]] bool try_later(bool not_ready) {
    pair_.lacks_receive = not_ready;
    if (pair_.type != IBV_QPT_RC) return false;
    if (not_ready) {
      if (pair_.attributes.rnr_retry != 7 && pair_.not_ready_tries++ >= pair_.attributes.rnr_retry)
        return false;
      const queue_pair_entry& peer =
          on_.shared().queue_pairs[pair_.attributes.dest_qp_num % queue_pair_limit];
      pair_.again_at =
          now_ns() + verbs::rnr_delay(peer.rnr_timer.load(std::memory_order_relaxed)).count();
      return true;
    }
    if (pair_.attributes.timeout == 0) {  // no limit: ask now and then
      pair_.again_at = now_ns() + 1'000'000;
      return true;
    }
    if (pair_.tries++ >= pair_.attributes.retry_cnt + 1U) return false;
    pair_.again_at = now_ns() + (std::int64_t{4096} << pair_.attributes.timeout);
    return true;
  }

  void finish(const send_request& request, const outcome& ended) {
    const bool failed = ended.status != IBV_WC_SUCCESS;
    const std::uint64_t position = pair_.started++;
    pair_.again_at = 0;
    if (failed && ended.status != IBV_WC_WR_FLUSH_ERR) {
      pair_.entry->state.store(pair_.type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
    }
    if (failed || pair_.signal_all || (request.flags & IBV_SEND_SIGNALED) != 0) {
      completion what;
      what.wr_id = request.wr_id;
      what.status = ended.status;
      what.opcode = reported(request.opcode);
      what.byte_length = ended.bytes;
      what.queue_pair = pair_.native.qp_base.qp_num;
      what.place = position;
      what.why = ended.why;
      what.sending = true;
      complete_here(here_, *pair_.send_queue, what);
    }
  }

  static ibv_wc_opcode reported(ibv_wr_opcode of) noexcept {
    switch (of) {
      case IBV_WR_RDMA_WRITE:
      case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
      case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
      case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
      case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
      default: return IBV_WC_SEND;
    }
  }

  /// The local memory of a request; false where a key or a range is wrong.
  [[gnu::always_inline]] bool gather(const send_request& request, std::uint32_t need) noexcept {
    const bool inlined = (request.flags & IBV_SEND_INLINE) != 0;
    length_ = 0;
    local_pieces_ = 0;
    for (const ibv_sge& each : request.pieces) {
      if (!inlined) {
        const region_view region = find_own(here_, each.lkey, false);
        if (!region.permits(domain_number(), each.addr, each.length, need)) return false;
      }
      pair_.local[local_pieces_++] = {reinterpret_cast<std::byte*>(each.addr), each.length};
      length_ += each.length;
    }
    return true;
  }
  std::span<const local_piece> local() const noexcept {
    return std::span{pair_.local}.first(local_pieces_);
  }
  std::uint32_t domain_number() const noexcept {
    return pair_.entry->domain.load(std::memory_order_relaxed);
  }
  /// The queue pair of a number if it can receive from here; null where nothing answers. Whether
  /// its process lives is asked afterwards: that takes time, and what reaches a dead one does no
  /// harm.
  queue_pair_entry* answering(std::uint32_t number) {
    if (here_.knobs.partitioned != 0) return nullptr;
    queue_pair_entry& entry = on_.shared().queue_pairs[number % queue_pair_limit];
    const std::uint32_t state = entry.state.load(std::memory_order_acquire);
    const bool up = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
                    state == IBV_QPS_SQE;
    if (!up || entry.number.load(std::memory_order_relaxed) != number ||
        entry.type.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(pair_.type)) {
      return nullptr;
    }
    if (pair_.type != IBV_QPT_UD &&
        entry.peer.load(std::memory_order_relaxed) != pair_.native.qp_base.qp_num)
      return nullptr;
    return &entry;
  }

  /// Whether an address is of this fabric: one of its GIDs.
  static bool is_here(const ibv_ah_attr& to) noexcept {
    if (to.is_global == 0) return false;
    const std::uint8_t* const raw = to.grh.dgid.raw;
    const bool link_local = raw[0] == 0xfe && raw[1] == 0x80;
    const bool loopback = raw[10] == 0xff && raw[11] == 0xff && raw[12] == 127;
    return link_local || loopback;
  }

  bool lost_on_the_way() noexcept {
    if (here_.knobs.faults.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    if (here_.knobs.kill_at_message.is_nth()) ::kill(::getpid(), SIGKILL);
    return here_.knobs.drop_message.is_nth();
  }

  [[gnu::always_inline]] outcome carry_out(const send_request& request) {
    const bool fills = request.opcode == IBV_WR_RDMA_READ ||
                       request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                       request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    // iWARP reads write to their sink as a peer would.
    const std::uint32_t need = !fills ? 0U
                               : here_.knobs.iwarp != 0
                                   ? std::uint32_t{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE}
                                   : std::uint32_t{IBV_ACCESS_LOCAL_WRITE};
    if (!gather(request, need)) return {outcome::done, IBV_WC_LOC_PROT_ERR, 0};
    const bool datagram = pair_.type == IBV_QPT_UD;
    if (length_ > (datagram ? 128ULL << here_.knobs.mtu.load() : here_.knobs.max_message.load())) {
      return {outcome::done, IBV_WC_LOC_LEN_ERR, 0};
    }
    const bool reliable = pair_.type == IBV_QPT_RC;
    const outcome silence = reliable ? outcome{outcome::retry, IBV_WC_SUCCESS, 0} : outcome{};
    if (lost_on_the_way()) return silence;
    if (datagram && !is_here(request.to->attributes)) return silence;
    queue_pair_entry* const peer =
        answering(datagram ? request.remote_number : pair_.attributes.dest_qp_num);
    if (peer == nullptr) return silence;
    const std::uint32_t owner = peer->owner.load();
    const outcome ended = reach(request, {here_, pair_, *peer, owner, local(), length_});
    // A millisecond late is early enough for what went well; what did not may be its death.
    const bool went_well = ended.what == outcome::done && ended.status == IBV_WC_SUCCESS;
    const bool lives = went_well ? on_.alive(owner) : on_.alive_now(owner);
    return lives ? ended : silence;
  }

  [[gnu::always_inline]] outcome reach(const send_request& request, const errand& on) {
    switch (request.opcode) {
      case IBV_WR_SEND:
      case IBV_WR_SEND_WITH_IMM: return send(request, on);
      case IBV_WR_RDMA_WRITE:
      case IBV_WR_RDMA_WRITE_WITH_IMM: return write(request, on);
      case IBV_WR_RDMA_READ: return read(request, on);
      default: return atomic(request, on);
    }
  }

  [[gnu::always_inline]] outcome send(const send_request& request, const errand& on) {
    const bool datagram = pair_.type == IBV_QPT_UD;
    if (datagram && on.to.qkey.load() != qkey_of(request)) return {};
    completion what;
    what.opcode = IBV_WC_RECV;
    what.byte_length = static_cast<std::uint32_t>(length_);
    if (request.opcode == IBV_WR_SEND_WITH_IMM) {
      what.flags = IBV_WC_WITH_IMM;
      what.immediate = request.immediate;
    }
    what.solicited = (request.flags & IBV_SEND_SOLICITED) != 0;
    if (datagram) {
      what.byte_length += grh_bytes;
      what.flags |= IBV_WC_GRH;
      what.source = pair_.native.qp_base.qp_num;
    }
    return deliver(on, what);
  }

  std::uint32_t qkey_of(const send_request& request) const noexcept {
    return (request.remote_qkey & 0x8000'0000U) != 0 ? pair_.attributes.qkey : request.remote_qkey;
  }

  /// The remote region of a request, if it permits that.
  [[gnu::always_inline]] static region_view target(const send_request& request, const errand& on,
                                                   std::uint64_t bytes,
                                                   std::uint32_t need) noexcept {
    const region_view found = find_of(on.here, on.owner, request.remote_key, true, on.from.target);
    const bool may = found.permits(on.to.domain.load(), request.remote_address, bytes, need);
    return may ? found : region_view{};
  }

  [[gnu::always_inline]] static reached move(const send_request& request, const errand& on,
                                             const region_view& region, bool outward) {
    std::uint64_t at = request.remote_address;
    for (const local_piece& each : on.local) {
      if (each.length == 0) continue;
      if (const reached how = transfer(on.here, region, at, each.data, each.length, outward);
          how != reached::yes) [[unlikely]] {
        return how;
      }
      at += each.length;
    }
    return reached::yes;
  }

  [[gnu::always_inline]] static outcome write(const send_request& request, const errand& on) {
    const bool notifies = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (on.length != 0 && (on.to.access.load() & IBV_ACCESS_REMOTE_WRITE) == 0)
      return on.refused(IBV_WC_REM_INV_REQ_ERR);
    region_view region;
    if (on.length != 0) {
      region = target(request, on, on.length, IBV_ACCESS_REMOTE_WRITE);
      if (!region) return on.refused(IBV_WC_REM_ACCESS_ERR);
    }
    const auto put = [&] { return region ? move(request, on, region, true) : reached::yes; };
    if (!notifies) {
      const reached how = put();
      return how == reached::yes ? outcome{} : on.failed_to_reach(how);
    }
    completion what;
    what.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    what.byte_length = static_cast<std::uint32_t>(on.length);
    what.flags = IBV_WC_WITH_IMM;
    what.immediate = request.immediate;
    what.solicited = (request.flags & IBV_SEND_SOLICITED) != 0;
    return notify(on, what, put);
  }

  static bool answers_reads(const errand& on) noexcept {
    const std::uint32_t most = on.to.reads_answered.load(std::memory_order_relaxed);
    return most != 0 &&
           (on.here.knobs.strict_reads == 0 || on.from.attributes.max_rd_atomic <= most);
  }

  [[gnu::noinline]] static outcome read(const send_request& request, const errand& on) {
    if ((on.to.access.load() & IBV_ACCESS_REMOTE_READ) == 0 || !answers_reads(on))
      return on.refused(IBV_WC_REM_INV_REQ_ERR);
    if (on.length == 0) return {};
    const region_view region = target(request, on, on.length, IBV_ACCESS_REMOTE_READ);
    if (!region) return on.refused(IBV_WC_REM_ACCESS_ERR);
    const reached how = move(request, on, region, false);
    if (how != reached::yes) return on.failed_to_reach(how);
    return {outcome::done, IBV_WC_SUCCESS, static_cast<std::uint32_t>(on.length)};
  }

  [[gnu::noinline]] static outcome atomic(const send_request& request, const errand& on) {
    if (on.local.size() != 1 || on.length < 8) return {outcome::done, IBV_WC_LOC_LEN_ERR, 0};
    if ((on.to.access.load() & IBV_ACCESS_REMOTE_ATOMIC) == 0 || !answers_reads(on) ||
        request.remote_address % 8 != 0) {
      return on.refused(IBV_WC_REM_INV_REQ_ERR);
    }
    const region_view region = target(request, on, 8, IBV_ACCESS_REMOTE_ATOMIC);
    if (!region) return on.refused(IBV_WC_REM_ACCESS_ERR);
    std::byte* const mapped = map(on.here, region, request.remote_address, 8);
    if (mapped == nullptr) {
      return region.arena.index < arena_limit
                 ? on.silence()
                 : on.refused(IBV_WC_REM_OP_ERR, cause::atomic_not_shared);
    }
    std::atomic_ref<std::uint64_t> word{*reinterpret_cast<std::uint64_t*>(mapped)};
    std::uint64_t old = request.compare_add;
    if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      old = word.fetch_add(request.compare_add);
    } else {
      word.compare_exchange_strong(old, request.swap);
    }
    std::memcpy(on.local[0].data, &old, 8);
    return {outcome::done, IBV_WC_SUCCESS, 8};
  }

  context& here_;
  queue_pair& pair_;
  fabric& on_;
  std::uint64_t length_ = 0;
  std::size_t local_pieces_ = 0;
};

}  // namespace verbena::soft
