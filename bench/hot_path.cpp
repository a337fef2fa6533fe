// SPDX-License-Identifier: BSL-1.0
//
// Time from the program's line to the provider's call and back, on a device that accepts
// everything: each pair is hand-written verbs and verbena. Times are for reading; tests/codegen
// decides by counts. Neither half is inlined into the loop.
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <benchmark/benchmark.h>

#include <verbena/chain/post.hpp>
#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/connection/core_policies.hpp>
#include <verbena/policy/accounting/unchecked.hpp>
#include <verbena/policy/policy_set.hpp>

#include "../tests/codegen/accepting.hpp"
#include "../tests/codegen/twin_poll.hpp"
#include "../tests/codegen/twin_post.hpp"

namespace vb = verbena;

namespace {

constexpr std::uint32_t domain = 7;
std::array<std::byte, 256> memory;
std::array<std::byte*, 64> ring;

template <class State>
State made_state() {
  State made{};
  made.memory_mask = 63;
  made.domain = domain;
  made.max_message = 1U << 20;
  made.send_pieces = 16;
  made.receive_pieces = 16;
  made.read_pieces = 16;
  made.signal_window = 1;
  made.sends.capacity = 64;
  made.receives.capacity = 64;
  return made;
}
template <class State>
void retire_all(State& of) {
  of.sends.retired = of.sends.posted;
  of.receives.retired = of.receives.posted;
}

const vb::view<std::byte, vb::rights::local_write> local{std::span{memory}.first(64), vb::lkey{1},
                                                         domain};
const vb::remote_region<std::byte, vb::rights::remote_read | vb::rights::remote_write> remote{
    0x7000'0000, 64, vb::rkey{2}};
const std::array<twin::local, 2> twin_locals{
    {{memory.data(), 64, 1, domain}, {memory.data(), 64, 1, domain}}};
const std::array<twin::remote, 2> twin_remotes{{{0x7000'0000, 64, 2}, {0x7000'0000, 64, 2}}};

template <class Accounting>
using policies = vb::core_of<vb::policies<Accounting>>;

/// The hand-written half of a pair.
template <class Post>
void by_hand(benchmark::State& run, Post post) {
  auto queue = made_state<twin::queue>();
  queue.qp = &accepting::instance.queue_pair.qp_base;
  std::array<void*, 64> data{};
  queue.memory_at = data.data();
  for (auto _ : run) {
    benchmark::DoNotOptimize(post(&queue, twin_locals.data(), twin_remotes.data(), 0, 0, 0));
    retire_all(queue);
  }
}
/// verbena's.
template <class Post>
void by_verbena(benchmark::State& run, Post post) {
  auto state = made_state<vb::queue_pair_state>();
  state.queue_pair = &accepting::instance.queue_pair.qp_base;
  state.memory_at = ring.data();
  for (auto _ : run) {
    benchmark::DoNotOptimize(post(state));
    retire_all(state);
  }
}

template <class Accounting>
void add(const std::string& accounting) {
  constexpr bool checks = Accounting::checks;
  using chosen = policies<Accounting>;
  const auto pair = [&](const std::string& name, auto twin_post, auto post) {
    benchmark::RegisterBenchmark((accounting + "/" + name + "/by_hand").c_str(),
                                 [=](benchmark::State& run) { by_hand(run, twin_post); });
    benchmark::RegisterBenchmark((accounting + "/" + name + "/verbena").c_str(),
                                 [=](benchmark::State& run) { by_verbena(run, post); });
  };
  constexpr auto every = twin::signal::every;
  pair("send", twin::post_one<twin::send, 1, every, checks>,
       [](auto& state)
           __attribute__((noinline)) { return vb::chain::post<chosen>(state, vb::send(local)); });
  pair("read", twin::post_one<twin::read, 1, every, checks>,
       [](auto& state) __attribute__((noinline)) {
         return vb::chain::post<chosen>(state, vb::read(local, remote));
       });
  pair("write", twin::post_one<twin::write, 1, every, checks>,
       [](auto& state) __attribute__((noinline)) {
         return vb::chain::post<chosen>(state, vb::write(local, remote));
       });
  pair("receive", twin::receive_one<1, checks>, [](auto& state) __attribute__((noinline)) {
    return vb::chain::post<chosen>(state, vb::receive(local));
  });
  pair("two_writes", twin::post_two<twin::write, 1, every, checks>,
       [](auto& state) __attribute__((noinline)) {
         return vb::chain::post<chosen>(state, vb::write(local, remote), vb::write(local, remote));
       });
  pair("two_receives", twin::receive_two<1, checks>, [](auto& state) __attribute__((noinline)) {
    return vb::chain::post<chosen>(state, vb::receive(local), vb::receive(local));
  });
}

/// Sixteen writes that have completed, polled at once.
void fill_completions(std::uint32_t owner) {
  static std::array<ibv_wc, twin::batch> entries;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    entries[i] = {};
    entries[i].wr_id = vb::work_request_id::make(vb::operation::write, owner, i, i).word;
  }
  accepting::completions = entries.data();
  accepting::completion_count = twin::batch;
}

void poll_by_hand(benchmark::State& run) {
  fill_completions(0);
  auto state = made_state<twin::queue>();
  twin::completion_queue queue{&accepting::instance.completion_queue, &state, 0, 1, 0, {}};
  twin::tally found{};
  for (auto _ : run) {
    state.sends = {16, 0, 64};
    benchmark::DoNotOptimize(twin::poll<twin::wants::writes>(&queue, &found));
  }
}

[[gnu::noinline]] vb::polled poll_once(vb::completion_queue_core<vb::completion::busy_poll>& queue,
                                       twin::tally& found) {
  return queue.poll(vb::on(
      [&](vb::completed<vb::write> done) {
        found.writes += 1;
        found.tokens += done.token();
      },
      [&](vb::failed) { found.failures += 1; }));
}

void poll_by_verbena(benchmark::State& run) {
  const auto queue =
      vb::completion_queue_core<vb::completion::busy_poll>::create(accepting::open(), {1024, 1}, {})
          .value();
  vb::queue_pair_state& state = *queue->attach(64).value();
  fill_completions(state.owner);
  twin::tally found{};
  for (auto _ : run) {
    state.sends = {16, 0, 64};
    benchmark::DoNotOptimize(poll_once(*queue, found));
  }
}

}  // namespace

int main(int count, char** words) {
  add<vb::accounting::ledger>("ledger");
  add<vb::accounting::unchecked>("unchecked");
  benchmark::RegisterBenchmark("poll_16_writes/by_hand", poll_by_hand);
  benchmark::RegisterBenchmark("poll_16_writes/verbena", poll_by_verbena);
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
