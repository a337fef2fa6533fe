// SPDX-License-Identifier: BSL-1.0
// built_posts.cpp includes this for all but the comparisons themselves, and is a unit of its own
// because it takes long to compile.
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include <verbena/connection/post_on.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>
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
using word = vb::view<std::uint64_t, vb::rights::local_write>;
using remote_word = vb::remote_region<std::uint64_t, vb::rights::remote_atomic>;
using twin::signal;

// Both sides are given the same state, the same memory, the same token.
vb::queue_pair_state state;
twin::queue queue;
static_assert(sizeof state == sizeof queue);
std::array<std::byte, 8 * 64> bytes;
std::array<std::uint64_t, 2> values;
std::array<std::byte*, 128> ring;
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
const std::array<word, 2> words{word{std::span{values}.first(1), vb::lkey{0x300}, domain},
                                word{std::span{values}.last(1), vb::lkey{0x301}, domain}};
const std::array<remote_word, 2> remote_words{remote_word{0x7000'1000, 1, vb::rkey{0x400}},
                                              remote_word{0x7000'2000, 1, vb::rkey{0x401}}};
std::array<twin::local, 8> twin_locals;
std::array<twin::local, 2> twin_words;
std::array<twin::remote, 2> twin_remote_words;
std::array<twin::remote, 4> twin_remotes;
constexpr std::uint32_t token = 0x123456;
constexpr std::uint64_t first_number = 0x0102'0304'0506'0708;
constexpr std::uint64_t second_number = 0x1112'1314'8586'8788;

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
    switch (work->opcode) {
      case IBV_WR_SEND: break;
      case IBV_WR_SEND_WITH_IMM: seen.push_back(work->imm_data); break;
      case IBV_WR_RDMA_WRITE_WITH_IMM: seen.push_back(work->imm_data); [[fallthrough]];
      default: seen.insert(seen.end(), {work->wr.rdma.remote_addr, work->wr.rdma.rkey}); break;
      case IBV_WR_ATOMIC_CMP_AND_SWP: seen.push_back(work->wr.atomic.swap); [[fallthrough]];
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        seen.insert(seen.end(), {work->wr.atomic.compare_add, work->wr.atomic.remote_addr,
                                 work->wr.atomic.rkey});
        break;
    }
    note(work->sg_list, work->num_sge);
  }
  return 0;
}

/// The request that an ibv_qp_ex is being told.
struct told {
  static inline ibv_send_wr work;
  static void begin(ibv_wr_opcode opcode, std::uint32_t key = 0, std::uint64_t address = 0,
                    __be32 immediate = 0, std::uint64_t operand = 0, std::uint64_t swap = 0) {
    work = {};
    work.wr_id = accepting::instance.queue_pair.wr_id;
    work.opcode = opcode;
    work.send_flags = accepting::instance.queue_pair.wr_flags;
    work.imm_data = immediate;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      work.wr.atomic = {address, operand, swap, key};
    } else {
      work.wr.rdma = {address, key};
    }
  }
  static void end(ibv_sge* pieces, std::size_t count) {
    work.sg_list = pieces;
    work.num_sge = static_cast<int>(count);
    take_sends(nullptr, &work, nullptr);
  }
};

/// Notes requests as take_sends does.
void take_built(ibv_qp_ex& from) {
  from.wr_start = accepting::builder::start;
  from.wr_complete = accepting::builder::complete;
  from.wr_send = [](ibv_qp_ex*) { told::begin(IBV_WR_SEND); };
  from.wr_send_imm = [](ibv_qp_ex*, __be32 immediate) {
    told::begin(IBV_WR_SEND_WITH_IMM, 0, 0, immediate);
  };
  from.wr_rdma_read = [](ibv_qp_ex*, std::uint32_t key, std::uint64_t address) {
    told::begin(IBV_WR_RDMA_READ, key, address);
  };
  from.wr_rdma_write = [](ibv_qp_ex*, std::uint32_t key, std::uint64_t address) {
    told::begin(IBV_WR_RDMA_WRITE, key, address);
  };
  from.wr_rdma_write_imm = [](ibv_qp_ex*, std::uint32_t key, std::uint64_t address,
                              __be32 immediate) {
    told::begin(IBV_WR_RDMA_WRITE_WITH_IMM, key, address, immediate);
  };
  from.wr_atomic_cmp_swp = [](ibv_qp_ex*, std::uint32_t key, std::uint64_t address,
                              std::uint64_t compare, std::uint64_t swap) {
    told::begin(IBV_WR_ATOMIC_CMP_AND_SWP, key, address, 0, compare, swap);
  };
  from.wr_atomic_fetch_add = [](ibv_qp_ex*, std::uint32_t key, std::uint64_t address,
                                std::uint64_t add) {
    told::begin(IBV_WR_ATOMIC_FETCH_AND_ADD, key, address, 0, add);
  };
  from.wr_set_sge = [](ibv_qp_ex*, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
    ibv_sge piece{address, length, key};
    told::end(&piece, 1);
  };
  from.wr_set_sge_list = [](ibv_qp_ex*, std::size_t count, const ibv_sge* pieces) {
    told::end(const_cast<ibv_sge*>(pieces), count);
  };
  from.wr_set_inline_data = [](ibv_qp_ex*, void* data, std::size_t length) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(length), 0};
    told::end(&piece, 1);
  };
  from.wr_set_inline_data_list = [](ibv_qp_ex*, std::size_t count, const ibv_data_buf* parts) {
    std::vector<ibv_sge> pieces;
    for (std::size_t i = 0; i < count; ++i) {
      pieces.push_back({reinterpret_cast<std::uintptr_t>(parts[i].addr),
                        static_cast<std::uint32_t>(parts[i].length), 0});
    }
    told::end(pieces.data(), count);
  };
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
  take_built(accepting::instance.queue_pair);
  state = vb::queue_pair_state{};
  state.queue_pair = &accepting::instance.queue_pair.qp_base;
  state.memory_at = ring.data();
  state.memory_mask = 63;
  state.sends = {0x1'0005, 0x1'0002, 64};
  state.receives = {0x2'0007, 0x2'0002, 64};
  state.owner = 0x3'0004;
  state.domain = domain;
  state.max_message = 1 << 30;
  state.send_pieces = 16;
  state.receive_pieces = 16;
  state.read_pieces = 16;
  state.inline_limit = 2;
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
  for (std::size_t i = 0; i < words.size(); ++i) {
    twin_words[i] = {words[i].data(), words[i].size_bytes(),
                     static_cast<std::uint32_t>(words[i].key()), words[i].domain()};
    twin_remote_words[i] = {remote_words[i].address(), remote_words[i].size_bytes(),
                            static_cast<std::uint32_t>(remote_words[i].key())};
  }
}

// Result, books, receive ring and work requests.
std::vector<std::uint64_t> effect(const auto& result, const auto& books) {
  std::vector<std::uint64_t> all = seen;
  all.push_back(std::bit_cast<std::uint64_t>(result));
  std::array<std::uint64_t, 8> state_words;
  std::memcpy(state_words.data(), &books, sizeof state_words);
  all.insert(all.end(), state_words.begin(), state_words.end());
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

/// `first` and `second` are the numbers that an operation works with, if any.
template <vb::operation What, std::size_t Pieces, class Local, class Remote>
constexpr auto request(const Local* here, const Remote* there, std::uint64_t first = 0,
                       std::uint64_t second = 0) {
  if constexpr (What == vb::operation::compare_and_swap) {
    return vb::compare_and_swap(*here, *there, first, second);
  } else if constexpr (What == vb::operation::fetch_and_add) {
    return vb::fetch_and_add(*here, *there, first);
  } else if constexpr (What == vb::operation::receive && Pieces == 0) {
    return vb::receive();
  } else if constexpr (What == vb::operation::send_with_immediate && Pieces == 0) {
    return vb::send_with_immediate(static_cast<std::uint32_t>(first));
  } else if constexpr (What == vb::operation::send_with_immediate) {
    return vb::send_with_immediate(memory<Pieces>(here), static_cast<std::uint32_t>(first));
  } else if constexpr (What == vb::operation::write_with_immediate && Pieces == 0) {
    return vb::write_with_immediate(*there, static_cast<std::uint32_t>(first));
  } else if constexpr (What == vb::operation::write_with_immediate) {
    return vb::write_with_immediate(memory<Pieces>(here), *there,
                                    static_cast<std::uint32_t>(first));
  } else if constexpr (What == vb::operation::receive) {
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

template <class Policies, vb::operation What, std::size_t Pieces, signal Signal, class Local,
          class Remote>
[[gnu::noinline]] vb::posted post_one(vb::queue_pair_state& to, const Local* l, const Remote* r,
                                      std::uint32_t t, std::uint64_t first, std::uint64_t second) {
  return vb::post_on<Policies>(
      to, no_mutex,
      asking<asks<Signal, true, What>>(request<What, Pieces>(l, r, first, second).token(t)));
}

template <class Policies, vb::operation What, std::size_t Pieces, signal Signal, class Local,
          class Remote>
[[gnu::noinline]] vb::posted post_two(vb::queue_pair_state& to, const Local* l, const Remote* r,
                                      std::uint32_t t, std::uint64_t first, std::uint64_t second) {
  return vb::post_on<Policies>(
      to, no_mutex,
      asking<asks<Signal, false, What>>(request<What, Pieces>(l, r, first, second).token(t)),
      asking<asks<Signal, true, What>>(request<What, Pieces>(l + Pieces, r + 1, second, first)));
}

/// A send or write with an option.
template <class Policies, vb::operation What, std::size_t Pieces, vb::option Option, signal Signal>
[[gnu::noinline]] vb::posted post_asking(vb::queue_pair_state& to, const local* l, const remote* r,
                                         std::uint32_t t, std::uint64_t, std::uint64_t) {
  const auto plain = request<What, Pieces>(l, r).token(t);
  if constexpr (Option == vb::option::fenced)
    return vb::post_on<Policies>(to, no_mutex, plain.fenced());
  if constexpr (Option == vb::option::solicited)
    return vb::post_on<Policies>(to, no_mutex, plain.solicited());
  if constexpr (Option == vb::option::inlined)
    return vb::post_on<Policies>(to, no_mutex, plain.inlined());
}

/// A write of memory that is not registered.
template <class Policies, signal Signal>
[[gnu::noinline]] vb::posted post_unregistered(vb::queue_pair_state& to, const local* l,
                                               const remote* r, std::uint32_t t, std::uint64_t,
                                               std::uint64_t) {
  return vb::post_on<Policies>(to, no_mutex,
                               vb::write(vb::unregistered{l->elements()}, *r).token(t));
}

template <class Policies, std::size_t Pieces, signal Signal>
[[gnu::noinline]] vb::posted post_mixed(vb::queue_pair_state& to, const local* l, const remote* r,
                                        std::uint32_t t, std::uint64_t, std::uint64_t) {
  constexpr auto write = vb::operation::write;
  return vb::post_on<Policies>(
      to, no_mutex, asking<asks<Signal, false, write>>(request<write, Pieces>(l, r)),
      asking<asks<Signal, false, write>>(request<write, Pieces>(l + Pieces, r + 1)),
      asking<asks<Signal, false, write>>(request<write, Pieces>(l + 2 * Pieces, r + 2)),
      asking<asks<Signal, true, write>>(
          request<vb::operation::send, Pieces>(l + 3 * Pieces, r).token(t)));
}

template <class Local, class Remote>
using verbena_function = vb::posted (*)(vb::queue_pair_state&, const Local*, const Remote*,
                                        std::uint32_t, std::uint64_t, std::uint64_t);
using twin_function = twin::outcome (*)(twin::queue*, const twin::local*, const twin::remote*,
                                        std::uint32_t, std::uint64_t, std::uint64_t);

template <class Local, class Remote>
measured measure(verbena_function<Local, Remote> function, const Local* here, const Remote* there) {
  return {reinterpret_cast<const void*>(function),
          [=] {
            return effect(function(state, here, there, token, first_number, second_number), state);
          },
          [=](std::uint64_t rounds) {
            return repeat(rounds, std::array{&state}, function, state, here, there, token,
                          first_number, second_number);
          }};
}
[[maybe_unused]] measured measure(twin_function function, const twin::local* here,
                                  const twin::remote* there) {
  return {reinterpret_cast<const void*>(function),
          [=] {
            return effect(function(&queue, here, there, token, first_number, second_number), queue);
          },
          [=](std::uint64_t rounds) {
            return repeat(rounds, std::array{&queue}, function, &queue, here, there, token,
                          first_number, second_number);
          }};
}

/// A posting policy with its twins and how often they call: in all, and for each request.
struct listed {
  using posting = vb::posting::list;
  static constexpr unsigned calls = 1;
  static constexpr unsigned calls_each = 0;
  template <twin::operation What, std::size_t Pieces, signal Signal, bool Checks, unsigned Flag = 0,
            twin::inlining Inlining = twin::inlining::never>
  static constexpr twin_function one =
      twin::post_one<What, Pieces, Signal, Checks, false, Flag, Inlining>;
  template <twin::operation What, std::size_t Pieces, signal Signal, bool Checks, unsigned Flag = 0,
            twin::inlining Inlining = twin::inlining::never>
  static constexpr twin_function usual_one =
      twin::post_one<What, Pieces, Signal, Checks, true, Flag, Inlining>;
  template <twin::operation What, std::size_t Pieces, signal Signal, bool Checks>
  static constexpr twin_function two = twin::post_two<What, Pieces, Signal, Checks>;
  template <twin::operation What, std::size_t Pieces, signal Signal, bool Checks>
  static constexpr twin_function usual_two = twin::post_two<What, Pieces, Signal, Checks, true>;
  template <std::size_t Pieces, signal Signal, bool Checks>
  static constexpr twin_function mixed = twin::post_mixed<Pieces, Signal, Checks>;
  template <std::size_t Pieces, signal Signal, bool Checks>
  static constexpr twin_function usual_mixed = twin::post_mixed<Pieces, Signal, Checks, true>;
};

template <class Side>
class collector {
 public:
  std::vector<comparison> all;

  template <class Accounting>
  void add_accounting(const std::string& name) {
    if constexpr (std::is_same_v<Side, listed>) {  // receives are posted one way alone
      add_receives<Accounting, 0>(name + "no piece");
      add_receives<Accounting, 1>(name + "1 piece");
      add_receives<Accounting, 2>(name + "2 pieces");
    }
    add_signaling<vb::signaling::every, signal::every, Accounting>(name + "every ");
    add_signaling<vb::signaling::one_in<16>, signal::one_in, Accounting>(name + "one_in ");
    add_signaling<vb::signaling::per_operation, signal::last_asks, Accounting>(name + "asked ");
    add_signaling<vb::signaling::per_operation, signal::none_asks, Accounting>(name + "unasked ");
  }

 private:
  template <class Signaling, signal Signal, class Accounting>
  void add_signaling(const std::string& name) {
    using policies = vb::policies<typename Side::posting, Signaling, Accounting>;
    add_pieces<policies, 1, Signal>(name + "1 piece ");
    add_pieces<policies, 2, Signal>(name + "2 pieces ");
    add_immediates<policies, 0, Signal>(name + "no piece ");
    if constexpr (Signal == signal::every || Signal == signal::one_in) {
      add_options<policies, 1, Signal>(name + "1 piece ");
      add_options<policies, 2, Signal>(name + "2 pieces ");
      constexpr bool checks = Accounting::checks;
      constexpr auto inlined = twin::inlining::always;
      add<Signal>(name + "unregistered write", post_unregistered<policies, Signal>,
                  Side::template one<twin::write, 1, Signal, checks, 0, inlined>,
                  Side::template usual_one<twin::write, 1, Signal, checks, 0, inlined>,
                  locals.data(), remotes.data());
    }
    add_operation<policies, vb::operation::compare_and_swap, twin::compare_and_swap, 1, Signal>(
        name + "compare_and_swap", words.data(), remote_words.data());
    add_operation<policies, vb::operation::fetch_and_add, twin::fetch_and_add, 1, Signal>(
        name + "fetch_and_add", words.data(), remote_words.data());
  }

  template <class Policies, std::size_t Pieces, signal Signal>
  void add_pieces(const std::string& name) {
    add_operation<Policies, vb::operation::send, twin::send, Pieces, Signal>(name + "send");
    add_operation<Policies, vb::operation::read, twin::read, Pieces, Signal>(name + "read");
    add_operation<Policies, vb::operation::write, twin::write, Pieces, Signal>(name + "write");
    add_immediates<Policies, Pieces, Signal>(name);
    constexpr bool checks = Policies::accounting::checks;
    add<Signal>(name + "write*3,send", post_mixed<Policies, Pieces, Signal>,
                Side::template mixed<Pieces, Signal, checks>,
                Side::template usual_mixed<Pieces, Signal, checks>, locals.data(), remotes.data(),
                4);
  }

  template <class Policies, std::size_t Pieces, signal Signal>
  void add_options(const std::string& name) {
    add_option<Policies, vb::operation::write, twin::write, Pieces, Signal, vb::option::fenced,
               IBV_SEND_FENCE>(name + "fenced write");
    add_option<Policies, vb::operation::send, twin::send, Pieces, Signal, vb::option::solicited,
               IBV_SEND_SOLICITED>(name + "solicited send");
    add_option<Policies, vb::operation::send, twin::send, Pieces, Signal, vb::option::inlined, 0,
               twin::inlining::where_it_fits>(name + "inlined send");
  }

  template <class Policies, vb::operation What, twin::operation Twin, std::size_t Pieces,
            signal Signal, vb::option Option, unsigned Flag,
            twin::inlining Inlining = twin::inlining::never>
  void add_option(const std::string& name) {
    constexpr bool checks = Policies::accounting::checks;
    add<Signal>(name, post_asking<Policies, What, Pieces, Option, Signal>,
                Side::template one<Twin, Pieces, Signal, checks, Flag, Inlining>,
                Side::template usual_one<Twin, Pieces, Signal, checks, Flag, Inlining>,
                locals.data(), remotes.data());
  }

  template <class Policies, std::size_t Pieces, signal Signal>
  void add_immediates(const std::string& name) {
    add_operation<Policies, vb::operation::send_with_immediate, twin::send_with_immediate, Pieces,
                  Signal>(name + "send_with_immediate");
    add_operation<Policies, vb::operation::write_with_immediate, twin::write_with_immediate, Pieces,
                  Signal>(name + "write_with_immediate");
  }

  template <class Policies, vb::operation What, twin::operation Twin, std::size_t Pieces,
            signal Signal, class Local = local, class Remote = remote>
  void add_operation(const std::string& name, const Local* here = locals.data(),
                     const Remote* there = remotes.data()) {
    constexpr bool checks = Policies::accounting::checks;
    add<Signal>(name, post_one<Policies, What, Pieces, Signal, Local, Remote>,
                Side::template one<Twin, Pieces, Signal, checks>,
                Side::template usual_one<Twin, Pieces, Signal, checks>, here, there);
    add<Signal>(name + "*2", post_two<Policies, What, Pieces, Signal, Local, Remote>,
                Side::template two<Twin, Pieces, Signal, checks>,
                Side::template usual_two<Twin, Pieces, Signal, checks>, here, there, 2);
  }

  template <class Accounting, std::size_t Pieces>
  void add_receives(const std::string& name) {
    using policies = vb::policies<Accounting>;
    constexpr bool checks = Accounting::checks;
    constexpr auto what = vb::operation::receive;
    add<signal::every>(name + " receive",
                       post_one<policies, what, Pieces, signal::every, local, remote>,
                       twin::receive_one<Pieces, checks>, twin::receive_one<Pieces, checks, true>,
                       locals.data(), remotes.data());
    add<signal::every>(name + " receive*2",
                       post_two<policies, what, Pieces, signal::every, local, remote>,
                       twin::receive_two<Pieces, checks>, twin::receive_two<Pieces, checks, true>,
                       locals.data(), remotes.data());
  }

  static std::pair<const twin::local*, const twin::remote*> of_twin(const local*, const remote*) {
    return {twin_locals.data(), twin_remotes.data()};
  }
  static std::pair<const twin::local*, const twin::remote*> of_twin(const word*,
                                                                    const remote_word*) {
    return {twin_words.data(), twin_remote_words.data()};
  }

  // Where requests are counted there are two ways: the window goes on, or it is full.
  template <signal Signal, class Local, class Remote>
  void add(const std::string& name, verbena_function<Local, Remote> ours, twin_function twin,
           twin_function usual, const Local* here, const Remote* there, unsigned requests = 1) {
    constexpr bool counts = Signal == signal::one_in || Signal == signal::none_asks;
    const auto twins = of_twin(here, there);
    const auto compare = [&](const std::string& called, std::uint16_t unsignaled) {
      all.push_back({called, [unsignaled] { prepare(unsignaled); },
                     Side::calls + Side::calls_each * requests, measure(ours, here, there),
                     measure(twin, twins.first, twins.second),
                     usual ? measure(usual, twins.first, twins.second) : measured{}});
    };
    compare(name, 0);
    if (counts) compare(name + ", due", 15);
  }
};

}  // namespace

#ifndef VERBENA_CODEGEN_SHARED
std::vector<comparison> post_comparisons() {
  collector<listed> made;
  made.add_accounting<vb::accounting::ledger>("ledger ");
  made.add_accounting<vb::accounting::unchecked>("unchecked ");
  return std::move(made.all);
}
#endif
