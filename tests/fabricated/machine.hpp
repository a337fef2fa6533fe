// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "channel.hpp"
#include "completion_queue.hpp"
#include "context.hpp"
#include "domain.hpp"
#include "garbage.hpp"
#include "kind.hpp"
#include "port.hpp"
#include "queue_pair.hpp"
#include "refusals.hpp"
#include "region.hpp"

namespace fabricated {

/// The state behind a fabricated device: what it says of itself, what it was told to do, what was
/// done to it. Change the public members at any time; calls from several threads are serialised.
class machine {
 public:
  /// @name What it says of itself
  /// @{
  ibv_device native{};
  ibv_device_attr attributes{};
  std::vector<port> ports{port{}};
  /// @}

  /// @name What it does
  /// @{
  /// Changes what a queue pair is granted, having been asked for what comes in.
  std::function<void(ibv_qp_cap&)> grant = [](ibv_qp_cap&) {};
  /// Most that may be asked for inline; more is refused with EINVAL.
  std::uint32_t inline_limit = 220;
  /// Bytes that may be registered in all; more is refused with ENOMEM.
  std::size_t registration_limit = std::numeric_limits<std::size_t>::max();
  /// Operations that ibv_wr_* builds (IBV_QP_EX_WITH_*); others are refused with EOPNOTSUPP.
  std::uint64_t send_ops = ~std::uint64_t{0};
  refusals refuse;
  /// The slots a new queue pair really has, whatever was granted; 0 for as granted.
  std::size_t send_slots = 0;
  std::size_t receive_slots = 0;
  /// What a post to a full queue returns: some providers give it negative, siw may return 0 and
  /// tell by the pointer alone.
  int out_of_room = ENOMEM;
  /// Whether a queue pair moved to ERR completes what is outstanding at once, or flush() does.
  bool flushes_on_error = true;
  /// Whether keys and ranges of local memory are checked when a request is posted.
  bool checks_keys = true;
  /// @}

  /// @name What was done
  /// @{
  /// Kinds of objects in the order they were destroyed.
  std::vector<kind> destroyed;
  int live(kind of) const { return live_[static_cast<std::size_t>(of)]; }
  unsigned count(call of) const { return refuse.count(of); }
  /// @}

  machine() = default;
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  /// What no correct program does, in the order done. A device that goes with some of it left, or
  /// with objects alive, aborts.
  std::vector<std::string> take_violations() { return std::exchange(violations_, {}); }
  void violated(std::string what) { violations_.push_back(std::move(what)); }
  void expect_leaks() { leaks_expected_ = true; }

  /// @name Completions: nothing completes unless told here
  /// @{

  /// Puts `completion` into a queue as it is.
  void push(ibv_cq* queue, const ibv_wc& completion) {
    const std::scoped_lock held{lock};
    put(of(queue), {completion, nullptr, false, 0}, false);
  }

  /// Completes the oldest sends, up to and including the `most`-th signaled one; the unsignaled
  /// after it stay. Returns how many completions that were.
  std::size_t complete_sends(ibv_qp* of_pair,
                             std::size_t most = std::numeric_limits<std::size_t>::max()) {
    const std::scoped_lock held{lock};
    queue_pair& pair = of(of_pair);
    std::size_t made = 0;
    for (std::size_t at = pair.sends.completed; at < pair.sends.posted.size() && made < most;
         ++at) {
      const posted_send& each = pair.sends.posted[at];
      if (!each.is_signaled() && pair.asked.sq_sig_all == 0) continue;
      ibv_wc completion = garbage_.completion();
      completion.status = IBV_WC_SUCCESS;
      completion.wr_id = each.request.wr_id;
      completion.qp_num = pair.qp_base.qp_num;
      completion.opcode = completion_opcode(each.request.opcode);
      completion.wc_flags = 0;
      if (completion.opcode == IBV_WC_RDMA_READ) {
        completion.byte_len = static_cast<std::uint32_t>(each.length());
      }
      pair.sends.completed = at + 1;
      put(of(pair.qp_base.send_cq), {completion, &pair, false, pair.sends.completed}, false);
      ++made;
    }
    return made;
  }

  /// Completes the oldest receive with a message of `size` bytes. False when none was posted.
  bool complete_receive(ibv_qp* of_pair, std::uint32_t size,
                        std::optional<std::uint32_t> immediate = {}, bool solicited = false) {
    const std::scoped_lock held{lock};
    queue_pair& pair = of(of_pair);
    if (pair.receives.completed == pair.receives.posted.size()) return false;
    ibv_wc completion = garbage_.completion();
    completion.status = IBV_WC_SUCCESS;
    completion.wr_id = pair.receives.posted[pair.receives.completed++].id;
    completion.qp_num = pair.qp_base.qp_num;
    completion.opcode = IBV_WC_RECV;
    completion.byte_len = size;
    completion.wc_flags = 0;
    if (immediate) {
      completion.wc_flags = IBV_WC_WITH_IMM;
      completion.imm_data = htonl(*immediate);
    }
    put(of(pair.qp_base.recv_cq), {completion, &pair, true, pair.receives.completed}, solicited);
    return true;
  }

  /// Everything outstanding that succeeds in order: signaled sends, then receives of `size` bytes.
  std::size_t complete_all(ibv_qp* of_pair, std::uint32_t size = 0) {
    std::size_t made = complete_sends(of_pair);
    while (complete_receive(of_pair, size)) ++made;
    return made;
  }

  /// The oldest send fails, signaled or not, and the queue pair with it. Flushes the rest unless
  /// told not to.
  bool fail_send(ibv_qp* of_pair, ibv_wc_status status, std::uint32_t vendor = 0) {
    const std::scoped_lock held{lock};
    queue_pair& pair = of(of_pair);
    if (pair.sends.completed == pair.sends.posted.size()) return false;
    fail_one_send(pair, status, vendor);
    to_error(pair);
    return true;
  }

  /// As fail_send, for the oldest receive.
  bool fail_receive(ibv_qp* of_pair, ibv_wc_status status, std::uint32_t vendor = 0) {
    const std::scoped_lock held{lock};
    queue_pair& pair = of(of_pair);
    if (pair.receives.completed == pair.receives.posted.size()) return false;
    fail_one_receive(pair, status, vendor);
    to_error(pair);
    return true;
  }

  /// Completes everything outstanding as flushed, unsignaled sends too.
  std::size_t flush(ibv_qp* of_pair) {
    const std::scoped_lock held{lock};
    queue_pair& pair = of(of_pair);
    std::size_t made = 0;
    for (; pair.sends.completed < pair.sends.posted.size(); ++made) {
      fail_one_send(pair, IBV_WC_WR_FLUSH_ERR, 0);
    }
    for (; pair.receives.completed < pair.receives.posted.size(); ++made) {
      fail_one_receive(pair, IBV_WC_WR_FLUSH_ERR, 0);
    }
    return made;
  }
  /// @}

  /// @name What stands behind a verbs object
  /// @{
  static machine& of(ibv_context* native_context) {
    return *static_cast<context*>(native_context)->owner;
  }
  static domain& of(ibv_pd* object) { return *static_cast<domain*>(object); }
  static thread_domain& of(ibv_td* object) { return *static_cast<thread_domain*>(object); }
  static region& of(ibv_mr* object) { return *static_cast<region*>(object); }
  static channel& of(ibv_comp_channel* object) { return *static_cast<channel*>(object); }
  static completion_queue& of(ibv_cq* object) { return *static_cast<completion_queue*>(object); }
  static queue_pair& of(ibv_qp* object) { return of(reinterpret_cast<ibv_qp_ex*>(object)); }
  static queue_pair& of(ibv_qp_ex* object) { return *static_cast<queue_pair*>(object); }
  /// @}

  /// @name For the calls themselves
  /// @{
  std::recursive_mutex lock;

  void born(kind what, ibv_context* on) {
    ++live_[static_cast<std::size_t>(what)];
    if (what != kind::device) ++static_cast<context*>(on)->users;
  }
  void died(kind what, ibv_context* on) {
    --live_[static_cast<std::size_t>(what)];
    if (what != kind::device) --static_cast<context*>(on)->users;
    destroyed.push_back(what);
  }

  std::uint32_t next_number() { return ++last_number_; }
  std::set<region*> regions;
  std::size_t registered_bytes = 0;

  /// Moves to ERR and flushes, unless that was turned off.
  void to_error(queue_pair& pair) {
    pair.qp_base.state = IBV_QPS_ERR;
    if (flushes_on_error) flush(&pair.qp_base);
  }

  /// Whether local memory may be used so by a request in `in`; otherwise that is a violation.
  void check_local(ibv_pd* in, const ibv_sge& piece, bool filled) {
    if (!checks_keys) return;
    const auto found = std::find_if(regions.begin(), regions.end(),
                                    [&](const region* each) { return each->lkey == piece.lkey; });
    if (found == regions.end()) return violated("a request uses an lkey that no region has");
    const region& used = **found;
    const auto first = reinterpret_cast<std::uintptr_t>(used.addr);
    if (used.pd != of(in).protects())
      violated("a request uses memory of another protection domain");
    if (piece.length == 0)
      violated("a request has a piece of no bytes, which adapters read as 2^31");
    if (piece.addr < first || piece.addr + piece.length > first + used.length) {
      violated("a request reaches beyond its memory region");
    }
    if (filled && (used.access & IBV_ACCESS_LOCAL_WRITE) == 0) {
      violated("a request fills memory registered without local write");
    }
  }

  /// Whether memory is there, found out without touching it.
  static bool is_mapped(const void* address) {
    char byte = 0;
    const iovec into{&byte, 1};
    const iovec from{const_cast<void*>(address), 1};
    return ::process_vm_readv(::getpid(), &into, 1, &from, 1, 0) == 1 || errno != EFAULT;
  }
  /// @}

 protected:
  ~machine() = default;

  bool is_clean() const {
    return violations_.empty() && (leaks_expected_ || std::all_of(live_.begin(), live_.end(),
                                                                  [](int n) { return n == 0; }));
  }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  static ibv_wc_opcode completion_opcode(ibv_wr_opcode of_request) {
    switch (of_request) {
      case IBV_WR_RDMA_WRITE:
      case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
      case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
      case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
      case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
      default: return IBV_WC_SEND;
    }
  }

  ibv_wc failed_completion(const queue_pair& pair, std::uint64_t id, ibv_wc_status status,
                           std::uint32_t vendor) {
    ibv_wc completion = garbage_.completion();
    completion.wr_id = id;
    completion.status = status;
    completion.vendor_err = vendor;
    completion.qp_num = pair.qp_base.qp_num;
    return completion;
  }
  void fail_one_send(queue_pair& pair, ibv_wc_status status, std::uint32_t vendor) {
    const std::uint64_t id = pair.sends.posted[pair.sends.completed++].request.wr_id;
    put(of(pair.qp_base.send_cq),
        {failed_completion(pair, id, status, vendor), &pair, false, pair.sends.completed}, false);
  }
  void fail_one_receive(queue_pair& pair, ibv_wc_status status, std::uint32_t vendor) {
    const std::uint64_t id = pair.receives.posted[pair.receives.completed++].id;
    put(of(pair.qp_base.recv_cq),
        {failed_completion(pair, id, status, vendor), &pair, true, pair.receives.completed}, false);
  }

  void put(completion_queue& queue, const completion_queue::entry& entry, bool solicited) {
    if (queue.entries.size() >= static_cast<std::size_t>(queue.cqe)) {
      violated("a completion queue of " + std::to_string(queue.cqe) + " entries overran");
      return;
    }
    queue.entries.push_back(entry);
    const bool wakes =
        queue.armed == arming::any || (queue.armed == arming::solicited &&
                                       (solicited || entry.completion.status != IBV_WC_SUCCESS));
    if (!wakes) return;
    queue.armed = arming::none;
    channel& to = of(queue.channel);
    to.events.push_back(&queue);
    ::eventfd_write(to.fd, 1);
  }

  garbage garbage_;
  std::array<int, kind_count> live_{};
  std::vector<std::string> violations_;
  bool leaks_expected_ = false;
  std::uint32_t last_number_ = 0;
};

}  // namespace fabricated
