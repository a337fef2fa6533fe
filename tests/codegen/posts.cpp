// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include <verbena/connection/post_on.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/accounting/unchecked.hpp>
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

#include "accepting.hpp"
#include "comparison.hpp"
#include "twin_post.hpp"

namespace vb = verbena;

namespace {

using local = vb::view<std::byte, vb::rights::local_write>;
using remote = vb::remote_region<std::byte, vb::rights::remote_read | vb::rights::remote_write>;
using twin::signal;

// Both sides are given the same state, the same memory, the same token.
vb::queue_pair_state state;
twin::queue queue;
static_assert(sizeof state == sizeof queue);
std::array<std::byte, 8 * 64> bytes;
std::array<std::byte*, 64> ring;
constexpr std::uint32_t domain = 7;

template <std::size_t... Index>
std::array<local, sizeof...(Index)> make_locals(std::index_sequence<Index...>) {
  return {
      local{std::span{bytes}.subspan(Index * 64, Index + 1), vb::lkey{0x100U + Index}, domain}...};
}
template <std::size_t... Index>
std::array<remote, sizeof...(Index)> make_remotes(std::index_sequence<Index...>) {
  return {remote{0x7000'0000 + Index * 64, 64, vb::rkey{0x200U + Index}}...};
}
const auto locals = make_locals(std::make_index_sequence<8>{});
const auto remotes = make_remotes(std::make_index_sequence<4>{});
std::array<twin::local, 8> twin_locals;
std::array<twin::remote, 4> twin_remotes;
constexpr std::uint32_t token = 0x123456;

// What the provider was given.
std::vector<std::uint64_t> seen;

void note(const ibv_sge* pieces, int count) {
  for (int i = 0; i < count; ++i) {
    seen.insert(seen.end(), {pieces[i].addr, pieces[i].length, pieces[i].lkey});
  }
}
int take_sends(ibv_qp*, ibv_send_wr* work, ibv_send_wr**) {
  for (; work != nullptr; work = work->next) {
    seen.insert(seen.end(), {work->wr_id, work->opcode, work->send_flags});
    if (work->opcode != IBV_WR_SEND) {
      seen.insert(seen.end(), {work->wr.rdma.remote_addr, work->wr.rdma.rkey});
    }
    note(work->sg_list, work->num_sge);
  }
  return 0;
}
int take_receives(ibv_qp*, ibv_recv_wr* work, ibv_recv_wr**) {
  for (; work != nullptr; work = work->next) {
    seen.push_back(work->wr_id);
    note(work->sg_list, work->num_sge);
  }
  return 0;
}

void prepare(std::uint16_t unsignaled) {
  seen.clear();
  ring = {};
  accepting::instance.context.ops.post_send = take_sends;
  accepting::instance.context.ops.post_recv = take_receives;
  state = {};
  state.queue_pair = &accepting::instance.queue_pair;
  state.receive_data = ring.data();
  state.receive_mask = 63;
  state.sends = {0x1'0005, 0x1'0002, 64};
  state.receives = {0x2'0007, 0x2'0002, 64};
  state.owner = 0x3'0004;
  state.domain = domain;
  state.max_message = 1 << 30;
  state.send_pieces = 16;
  state.receive_pieces = 16;
  state.read_pieces = 16;
  state.unsignaled = unsignaled;
  state.signal_window = 16;
  queue = std::bit_cast<twin::queue>(state);
  for (std::size_t i = 0; i < locals.size(); ++i) {
    twin_locals[i] = {locals[i].data(), locals[i].size_bytes(),
                      static_cast<std::uint32_t>(locals[i].key()), locals[i].domain()};
  }
  for (std::size_t i = 0; i < remotes.size(); ++i) {
    twin_remotes[i] = {remotes[i].address(), remotes[i].size_bytes(),
                       static_cast<std::uint32_t>(remotes[i].key())};
  }
}

// Result, books, receive ring and work requests.
std::vector<std::uint64_t> effect(const auto& result, const auto& books) {
  std::vector<std::uint64_t> all = seen;
  all.push_back(std::bit_cast<std::uint64_t>(result));
  std::array<std::uint64_t, 8> words;
  std::memcpy(words.data(), &books, sizeof words);
  words[7] &= 0xffff'ffff'ffff;  // above it is padding
  all.insert(all.end(), words.begin(), words.end());
  for (const std::byte* each : ring) all.push_back(reinterpret_cast<std::uintptr_t>(each));
  return all;
}

// verbena's side, as connection::post does it for its users.
constinit vb::threading::single_owner::mutex no_mutex;

template <std::size_t Pieces>
constexpr decltype(auto) memory(const local* from) {
  if constexpr (Pieces == 1) {
    return (from[0]);
  } else {
    return vb::pieces{from[0], from[1]};
  }
}

template <vb::operation What, std::size_t Pieces>
constexpr auto request(const local* here, const remote* there) {
  if constexpr (What == vb::operation::receive) {
    return vb::receive(memory<Pieces>(here));
  } else if constexpr (What == vb::operation::send) {
    return vb::send(memory<Pieces>(here));
  } else if constexpr (What == vb::operation::read) {
    return vb::read(memory<Pieces>(here), *there);
  } else {
    return vb::write(memory<Pieces>(here), *there);
  }
}

template <bool Asks>
constexpr auto asking(auto request) {
  if constexpr (Asks) {
    return request;
  } else {
    return request.unsignaled();
  }
}

template <signal Signal, bool Last, vb::operation What>
constexpr bool asks = What == vb::operation::receive ||
                      !(Signal == signal::none_asks || (Signal == signal::last_asks && !Last));

template <class Policies, vb::operation What, std::size_t Pieces, signal Signal>
[[gnu::noinline]] vb::posted post_one(vb::queue_pair_state& to, const local* l, const remote* r,
                                      std::uint32_t t) {
  return vb::post_on<Policies>(
      to, no_mutex, asking<asks<Signal, true, What>>(request<What, Pieces>(l, r).token(t)));
}

template <class Policies, vb::operation What, std::size_t Pieces, signal Signal>
[[gnu::noinline]] vb::posted post_two(vb::queue_pair_state& to, const local* l, const remote* r,
                                      std::uint32_t t) {
  return vb::post_on<Policies>(
      to, no_mutex, asking<asks<Signal, false, What>>(request<What, Pieces>(l, r).token(t)),
      asking<asks<Signal, true, What>>(request<What, Pieces>(l + Pieces, r + 1)));
}

template <class Policies, std::size_t Pieces, signal Signal>
[[gnu::noinline]] vb::posted post_mixed(vb::queue_pair_state& to, const local* l, const remote* r,
                                        std::uint32_t t) {
  constexpr auto write = vb::operation::write;
  return vb::post_on<Policies>(
      to, no_mutex, asking<asks<Signal, false, write>>(request<write, Pieces>(l, r)),
      asking<asks<Signal, false, write>>(request<write, Pieces>(l + Pieces, r + 1)),
      asking<asks<Signal, false, write>>(request<write, Pieces>(l + 2 * Pieces, r + 2)),
      asking<asks<Signal, true, write>>(
          request<vb::operation::send, Pieces>(l + 3 * Pieces, nullptr).token(t)));
}

using verbena_function = vb::posted (*)(vb::queue_pair_state&, const local*, const remote*,
                                        std::uint32_t);
using twin_function = twin::outcome (*)(twin::queue*, const twin::local*, const twin::remote*,
                                        std::uint32_t);

measured measure(verbena_function function) {
  return {reinterpret_cast<const void*>(function), [function] {
            return effect(function(state, locals.data(), remotes.data(), token), state);
          }};
}
measured measure(twin_function function) {
  return {reinterpret_cast<const void*>(function), [function] {
            return effect(function(&queue, twin_locals.data(), twin_remotes.data(), token), queue);
          }};
}

class collector {
 public:
  std::vector<comparison> all;

  template <class Accounting>
  void add_accounting(const std::string& name) {
    add_receives<Accounting, 1>(name + "1 piece");
    add_receives<Accounting, 2>(name + "2 pieces");
    add_signaling<vb::signaling::every, signal::every, Accounting>(name + "every ");
    add_signaling<vb::signaling::one_in<16>, signal::one_in, Accounting>(name + "one_in ");
    add_signaling<vb::signaling::per_operation, signal::last_asks, Accounting>(name + "asked ");
    add_signaling<vb::signaling::per_operation, signal::none_asks, Accounting>(name + "unasked ");
  }

 private:
  template <class Signaling, signal Signal, class Accounting>
  void add_signaling(const std::string& name) {
    using policies = vb::policies<vb::posting::list, Signaling, Accounting>;
    add_pieces<policies, 1, Signal>(name + "1 piece ");
    add_pieces<policies, 2, Signal>(name + "2 pieces ");
  }

  template <class Policies, std::size_t Pieces, signal Signal>
  void add_pieces(const std::string& name) {
    add_operation<Policies, vb::operation::send, twin::send, Pieces, Signal>(name + "send");
    add_operation<Policies, vb::operation::read, twin::read, Pieces, Signal>(name + "read");
    add_operation<Policies, vb::operation::write, twin::write, Pieces, Signal>(name + "write");
    constexpr bool checks = Policies::accounting::checks;
    add<Signal>(name + "write*3,send", post_mixed<Policies, Pieces, Signal>,
                twin::post_mixed<Pieces, Signal, checks>,
                twin::post_mixed<Pieces, Signal, checks, true>);
  }

  template <class Policies, vb::operation What, twin::operation Twin, std::size_t Pieces,
            signal Signal>
  void add_operation(const std::string& name) {
    constexpr bool checks = Policies::accounting::checks;
    add<Signal>(name, post_one<Policies, What, Pieces, Signal>,
                twin::post_one<Twin, Pieces, Signal, checks>,
                twin::post_one<Twin, Pieces, Signal, checks, true>);
    add<Signal>(name + "*2", post_two<Policies, What, Pieces, Signal>,
                twin::post_two<Twin, Pieces, Signal, checks>,
                twin::post_two<Twin, Pieces, Signal, checks, true>);
  }

  template <class Accounting, std::size_t Pieces>
  void add_receives(const std::string& name) {
    using policies = vb::policies<Accounting>;
    constexpr bool checks = Accounting::checks;
    constexpr auto what = vb::operation::receive;
    add<signal::every>(name + " receive", post_one<policies, what, Pieces, signal::every>,
                       twin::receive_one<Pieces, checks>, twin::receive_one<Pieces, checks, true>);
    add<signal::every>(name + " receive*2", post_two<policies, what, Pieces, signal::every>,
                       twin::receive_two<Pieces, checks>, twin::receive_two<Pieces, checks, true>);
  }

  // Where requests are counted there are two ways: the window goes on, or it is full.
  template <signal Signal>
  void add(const std::string& name, verbena_function ours, twin_function twin,
           twin_function usual) {
    constexpr bool counts = Signal == signal::one_in || Signal == signal::none_asks;
    all.push_back({name, [] { prepare(0); }, 1, measure(ours), measure(twin), measure(usual)});
    if (counts) {
      all.push_back(
          {name + ", due", [] { prepare(15); }, 1, measure(ours), measure(twin), measure(usual)});
    }
  }
};

}  // namespace

std::vector<comparison> post_comparisons() {
  collector made;
  made.add_accounting<vb::accounting::ledger>("ledger ");
  made.add_accounting<vb::accounting::unchecked>("unchecked ");
  return std::move(made.all);
}
