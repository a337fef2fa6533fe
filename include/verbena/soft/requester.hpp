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
#include <optional>
#include <vector>

#include <verbena/soft/arrival.hpp>
#include <verbena/soft/complete.hpp>
#include <verbena/soft/flush.hpp>
#include <verbena/soft/memory.hpp>
#include <verbena/soft/receive.hpp>
#include <verbena/soft/sleep.hpp>
#include <verbena/verbs/timers.hpp>

/// Carrying out send requests: the side that posts, polls or waits does the work of both ends.
/// Everything here runs under the queue pair's mutex.
namespace verbena::soft {

/// How carrying out a request ended.
struct outcome {
  enum kind { done, retry, not_ready } what = done;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t bytes = 0;
  cause why = cause::unsaid;
};

class requester {
 public:
  requester(context& here, queue_pair& of) noexcept : here_{here}, pair_{of}, on_{*here.fabric} {}

  /// Carries out what can be; what has to wait is looked at again when something polls or sleeps.
  void run() {
    while (pair_.started != pair_.posted) {
      send_request& request = pair_.requests[pair_.started % pair_.requests.size()];
      const ibv_qp_state state = state_of(*pair_.entry);
      if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
        finish(request, {outcome::done, IBV_WC_WR_FLUSH_ERR, 0});
        continue;
      }
      if (state != IBV_QPS_RTS) break;
      if (pair_.again_at != 0 && now_ns() < pair_.again_at) return wait(true);
      pair_.again_at = 0;
      const outcome ended = carry_out(request);
      if (ended.what == outcome::done) {
        pair_.tries = 0;
        pair_.not_ready_tries = 0;
        finish(request, ended);
      } else if (!try_later(ended.what == outcome::not_ready)) {
        finish(request,
               {outcome::done,
                ended.what == outcome::not_ready ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR,
                0});
      }
    }
    wait(false);
    flush{here_, pair_}.receives();
  }

 private:
  struct piece {
    std::byte* data;
    std::size_t length;
  };
  void wait(bool waits) noexcept {
    if (waits && pair_.send_queue->native.channel != nullptr)
      set_timer(channel::of(pair_.send_queue->native.channel), pair_.again_at);
    if (pair_.waits == waits) return;
    pair_.waits = waits;
    pair_.send_queue->blocked.fetch_add(waits ? 1U : ~0U);
  }

  bool try_later(bool not_ready) {
    if (pair_.type != IBV_QPT_RC) return false;
    if (not_ready) {
      if (pair_.attributes.rnr_retry != 7 && pair_.not_ready_tries++ >= pair_.attributes.rnr_retry)
        return false;
      pair_.again_at = now_ns() + verbs::rnr_delay(not_ready_code_).count();
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

  void finish(send_request& request, outcome ended) {
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
      what.position = position;
      what.why = ended.why;
      what.sending = true;
      complete(here_, pair_.send_queue->index, what);
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

  /// Marks this queue pair as touching the memory of `owner`, so that deregistration there waits.
  class visiting {
   public:
    visiting(queue_pair& of, std::uint32_t owner) noexcept : of_{of} {
      of_.entry->visiting.store(owner, std::memory_order_seq_cst);
    }
    ~visiting() { of_.entry->visiting.store(0, std::memory_order_release); }
    visiting(const visiting&) = delete;
    visiting& operator=(const visiting&) = delete;

   private:
    queue_pair& of_;
  };

  /// The local memory of a request; false where a key or a range is wrong.
  bool gather(const send_request& request, std::uint32_t need) {
    local_.clear();
    if ((request.flags & IBV_SEND_INLINE) != 0) {
      local_.push_back({const_cast<std::byte*>(request.inlined.data()), request.inlined.size()});
      return true;
    }
    for (const ibv_sge& each : request.pieces) {
      const auto region = find(here_.regions.get(), each.lkey, false);
      if (!region || region->domain != domain_number() || !region->holds(each.addr, each.length) ||
          (region->access & need) != need) {
        return false;
      }
      local_.push_back({reinterpret_cast<std::byte*>(each.addr), each.length});
    }
    return true;
  }
  std::uint32_t domain_number() const noexcept {
    return pair_.entry->domain.load(std::memory_order_relaxed);
  }
  std::uint64_t length() const noexcept {
    std::uint64_t sum = 0;
    for (const piece& each : local_) sum += each.length;
    return sum;
  }

  /// The queue pair of a number if it can receive from here; null where nothing answers.
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
    return on_.alive(entry.owner.load(std::memory_order_relaxed)) ? &entry : nullptr;
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
    if (here_.knobs.faults.load(std::memory_order_relaxed) == 0) return false;
    if (here_.knobs.kill_at_message.is_nth()) ::kill(::getpid(), SIGKILL);
    return here_.knobs.drop_message.is_nth();
  }

  outcome carry_out(const send_request& request) {
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
    if (length() > (datagram ? 128ULL << here_.knobs.mtu.load() : here_.knobs.max_message.load())) {
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
    const visiting mark{pair_, owner};
    const fabric::visit guard{on_};
    switch (request.opcode) {
      case IBV_WR_SEND:
      case IBV_WR_SEND_WITH_IMM: return send(request, *peer, owner);
      case IBV_WR_RDMA_WRITE:
      case IBV_WR_RDMA_WRITE_WITH_IMM: return write(request, *peer, owner);
      case IBV_WR_RDMA_READ: return read(request, *peer, owner);
      default: return atomic(request, *peer, owner);
    }
  }

  /// The peer's queue pair fails with this one; unreliable ones drop what they can not take.
  outcome refused(queue_pair_entry& peer, ibv_wc_status status) {
    if (pair_.type != IBV_QPT_RC) return {};
    std::uint32_t state = peer.state.load();
    while ((state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD) &&
           !peer.state.compare_exchange_weak(state, IBV_QPS_ERR)) {
    }
    peer.trouble.store(status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR + 1U
                                                       : IBV_EVENT_QP_REQ_ERR + 1U);
    wake(here_, peer.owner.load(), async_number);
    const std::uint32_t queue = peer.completion_queue.load();
    if (queue < completion_queue_limit) {
      completion_queue_entry& entry = on_.shared().completion_queues[queue];
      fire(here_, entry, true);
    }
    return {outcome::done, status, 0};
  }

  outcome reach_failed(reached how) const noexcept {
    if (how == reached::gone)
      return pair_.type == IBV_QPT_RC ? outcome{outcome::retry, IBV_WC_SUCCESS, 0} : outcome{};
    return {outcome::done, IBV_WC_REM_OP_ERR, 0, cause::memory_forbidden};
  }

  outcome send(const send_request& request, queue_pair_entry& peer, std::uint32_t owner) {
    const bool datagram = pair_.type == IBV_QPT_UD;
    if (datagram && peer.qkey.load() != qkey_of(request)) return {};
    arrival what;
    what.bytes = static_cast<std::uint32_t>(length());
    if (request.opcode == IBV_WR_SEND_WITH_IMM) {
      what.flags = IBV_WC_WITH_IMM;
      what.immediate = request.immediate;
    }
    what.solicited = (request.flags & IBV_SEND_SOLICITED) != 0;
    if (datagram) {
      what.bytes += grh_bytes;
      what.flags |= IBV_WC_GRH;
      what.source = pair_.native.qp_base.qp_num;
    }
    return deliver(peer, owner, what, what.bytes, datagram);
  }

  std::uint32_t qkey_of(const send_request& request) const noexcept {
    return (request.remote_qkey & 0x8000'0000U) != 0 ? pair_.attributes.qkey : request.remote_qkey;
  }

  /// Takes a receive of the peer's, fills it with the local memory, completes it.
  outcome deliver(queue_pair_entry& peer, std::uint32_t owner, const arrival& what,
                  std::uint64_t needed, bool with_grh) {
    const bool reliable = pair_.type == IBV_QPT_RC;
    const std::uint32_t index = peer.receive_queue.load();
    if (index >= receive_queue_limit) return reach_failed(reached::gone);
    const bool carries = what.opcode == IBV_WC_RECV;
    switch (take_receive(here_, on_.shared().receive_queues[index], peer.number.load(),
                         carries ? needed : 0, reliable, receive_)) {
      case taking::gone: return reach_failed(reached::gone);
      case taking::empty:
        if (!reliable) return {};
        not_ready_code_ = peer.rnr_timer.load();
        return {outcome::not_ready, IBV_WC_SUCCESS, 0};
      case taking::too_short:
        if (!reliable) return {};
        tell_receive(here_, peer.completion_queue.load(), peer.number.load(), receive_.wr_id,
                     IBV_WC_LOC_LEN_ERR, {}, receive_.told);
        receive_.finish();
        return refused(peer, IBV_WC_REM_INV_REQ_ERR);
      case taking::got: break;
    }
    if (carries) {
      bool gone = false;
      const ibv_wc_status status = scatter(peer, owner, with_grh, gone);
      if (gone) return reach_failed(reached::gone);
      if (status != IBV_WC_SUCCESS) {
        arrival failed;
        failed.why = why_;
        tell_receive(here_, peer.completion_queue.load(), peer.number.load(), receive_.wr_id,
                     status, failed, receive_.told);
        receive_.finish();
        if (!reliable) return {};
        outcome ended = refused(peer, IBV_WC_REM_OP_ERR);
        ended.why = why_;
        return ended;
      }
    }
    // Whoever dies here leaves a receive that says whether it has been told of.
    tell_receive(here_, peer.completion_queue.load(), peer.number.load(), receive_.wr_id,
                 IBV_WC_SUCCESS, what, receive_.told);
    receive_.finish();
    return {};
  }

  ibv_wc_status scatter(queue_pair_entry& peer, std::uint32_t owner, bool with_grh, bool& gone) {
    std::array<std::byte, grh_bytes> grh{};
    std::size_t source = 0;
    std::size_t at = 0;
    if (with_grh) {
      make_grh(grh, here_.knobs.undefined_grh != 0);
      local_.insert(local_.begin(), {grh.data(), grh.size()});
    }
    ibv_wc_status status = IBV_WC_SUCCESS;
    why_ = cause::unsaid;
    for (const shared_piece& into : receive_.pieces) {
      std::uint64_t filled = 0;
      if (source == local_.size() || status != IBV_WC_SUCCESS) break;
      const auto region = find_of(here_, owner, into.key, false);
      if (!region || region->domain != peer.domain.load() ||
          !region->holds(into.address, into.length) ||
          (region->access & IBV_ACCESS_LOCAL_WRITE) == 0) {
        status = IBV_WC_LOC_PROT_ERR;
        break;
      }
      while (filled < into.length && source < local_.size()) {
        const std::size_t part =
            std::min<std::size_t>(into.length - filled, local_[source].length - at);
        const reached how = part == 0 ? reached::yes
                                      : transfer(here_, *region, into.address + filled,
                                                 local_[source].data + at, part, true);
        if (how != reached::yes) {
          why_ = how == reached::forbidden ? cause::memory_forbidden : cause::unsaid;
          gone = how == reached::gone && !on_.alive_now(owner);
          status = IBV_WC_LOC_PROT_ERR;
          break;
        }
        filled += part;
        at += part;
        if (at == local_[source].length) {
          ++source;
          at = 0;
        }
      }
    }
    if (with_grh) local_.erase(local_.begin());
    return status;
  }

  static constexpr std::uint32_t grh_bytes = 40;

  /// RoCE v2 over IPv4: the IP header stands in the second half, the first is undefined.
  static void make_grh(std::array<std::byte, grh_bytes>& into, bool garbage) noexcept {
    into.fill(garbage ? std::byte{0xa5} : std::byte{0});
    constexpr std::array<std::uint8_t, 20> header{0x45, 0, 0,   0, 0, 0, 0x40, 0, 64, 17,
                                                  0,    0, 127, 0, 0, 1, 127,  0, 0,  1};
    for (std::size_t i = 0; i < header.size(); ++i) into[20 + i] = std::byte{header[i]};
  }

  /// The remote region of a request, checked; nothing to check for no bytes.
  std::optional<region_view> target(const send_request& request, queue_pair_entry& peer,
                                    std::uint32_t owner, std::uint64_t bytes, std::uint32_t need) {
    const auto region = find_of(here_, owner, request.remote_key, true);
    if (!region || region->domain != peer.domain.load() ||
        !region->holds(request.remote_address, bytes) || (region->access & need) != need) {
      return {};
    }
    return region;
  }

  outcome move(const send_request& request, const region_view& region, bool outward) {
    std::uint64_t at = request.remote_address;
    for (const piece& each : local_) {
      if (each.length == 0) continue;
      if (const reached how = transfer(here_, region, at, each.data, each.length, outward);
          how != reached::yes) {
        return reach_failed(how);
      }
      at += each.length;
    }
    return {outcome::done, IBV_WC_SUCCESS, static_cast<std::uint32_t>(length())};
  }

  outcome write(const send_request& request, queue_pair_entry& peer, std::uint32_t owner) {
    const bool notifies = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if ((peer.access.load() & IBV_ACCESS_REMOTE_WRITE) == 0 && length() != 0)
      return refused(peer, IBV_WC_REM_INV_REQ_ERR);
    std::optional<region_view> region;
    if (length() != 0) {
      region = target(request, peer, owner, length(), IBV_ACCESS_REMOTE_WRITE);
      if (!region) return refused(peer, IBV_WC_REM_ACCESS_ERR);
    }
    if (notifies && pair_.type == IBV_QPT_RC) {
      // Nothing may be written before there is a receive to tell of it.
      const std::uint32_t index = peer.receive_queue.load();
      if (index >= receive_queue_limit) return reach_failed(reached::gone);
      receive_queue_entry& queue = on_.shared().receive_queues[index];
      if (queue.posted.load(std::memory_order_acquire) ==
          queue.taken.load(std::memory_order_acquire)) {
        not_ready_code_ = peer.rnr_timer.load();
        return {outcome::not_ready, IBV_WC_SUCCESS, 0};
      }
    }
    if (region) {
      if (const outcome moved = move(request, *region, true);
          moved.what != outcome::done || moved.status != IBV_WC_SUCCESS) {
        return moved;
      }
    }
    if (!notifies) return {};
    arrival what;
    what.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    what.bytes = static_cast<std::uint32_t>(length());
    what.flags = IBV_WC_WITH_IMM;
    what.immediate = request.immediate;
    what.solicited = (request.flags & IBV_SEND_SOLICITED) != 0;
    return deliver(peer, owner, what, 0, false);
  }

  bool answers_reads(const queue_pair_entry& peer) const noexcept {
    const std::uint32_t most = peer.reads_answered.load(std::memory_order_relaxed);
    return most != 0 && (here_.knobs.strict_reads == 0 || pair_.attributes.max_rd_atomic <= most);
  }

  outcome read(const send_request& request, queue_pair_entry& peer, std::uint32_t owner) {
    if ((peer.access.load() & IBV_ACCESS_REMOTE_READ) == 0 || !answers_reads(peer)) {
      return refused(peer, IBV_WC_REM_INV_REQ_ERR);
    }
    if (length() == 0) return {};
    const auto region = target(request, peer, owner, length(), IBV_ACCESS_REMOTE_READ);
    if (!region) return refused(peer, IBV_WC_REM_ACCESS_ERR);
    return move(request, *region, false);
  }

  outcome atomic(const send_request& request, queue_pair_entry& peer, std::uint32_t owner) {
    if (local_.size() != 1 || local_[0].length < 8) return {outcome::done, IBV_WC_LOC_LEN_ERR, 0};
    if ((peer.access.load() & IBV_ACCESS_REMOTE_ATOMIC) == 0 || !answers_reads(peer) ||
        request.remote_address % 8 != 0) {
      return refused(peer, IBV_WC_REM_INV_REQ_ERR);
    }
    const auto region = target(request, peer, owner, 8, IBV_ACCESS_REMOTE_ATOMIC);
    if (!region) return refused(peer, IBV_WC_REM_ACCESS_ERR);
    std::byte* const mapped = map(here_, *region, request.remote_address, 8);
    if (mapped == nullptr) {
      if (region->arena.index < arena_limit) return reach_failed(reached::gone);
      outcome ended = refused(peer, IBV_WC_REM_OP_ERR);
      ended.why = cause::atomic_not_shared;
      return ended;
    }
    std::atomic_ref<std::uint64_t> word{*reinterpret_cast<std::uint64_t*>(mapped)};
    std::uint64_t old = request.compare_add;
    if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      old = word.fetch_add(request.compare_add);
    } else {
      word.compare_exchange_strong(old, request.swap);
    }
    std::memcpy(local_[0].data, &old, 8);
    return {outcome::done, IBV_WC_SUCCESS, 8};
  }

  context& here_;
  queue_pair& pair_;
  fabric& on_;
  std::vector<piece> local_;
  taken_receive receive_;
  std::uint32_t not_ready_code_ = 0;
  cause why_ = cause::unsaid;  ///< of the last scatter that failed
};

}  // namespace verbena::soft
