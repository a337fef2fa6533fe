// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include <verbena/connection/completion_queue.hpp>
#include <verbena/policy/completion/busy_poll.hpp>

#include "accepting.hpp"
#include "comparison.hpp"
#include "twin_poll.hpp"

namespace vb = verbena;

namespace {

using twin::tally;
using twin::wants;
using completion_queue = vb::completion_queue<>;

constexpr std::uint32_t connections = 4;
std::array<std::byte*, 128> ring;
alignas(8) std::array<std::byte, 64> message{std::byte{7}};
std::array<ibv_wc, twin::batch> completions;
tally found;

completion_queue& queue() {
  static completion_queue made{accepting::open(), {1024, connections}};
  return made;
}
std::array<vb::queue_pair_state*, connections>& states() {
  static std::array<vb::queue_pair_state*, connections> made = [] {
    std::array<vb::queue_pair_state*, connections> all;
    for (auto*& each : all) each = queue().shared()->attach(128).value();
    return all;
  }();
  return made;
}

std::array<twin::queue, connections> twin_queues;
twin::completion_queue twin_queue;

/// Completions of these kinds, each of the next connection's next request; their receives are
/// those of datagrams or not.
void prepare(std::span<const vb::operation> kinds, bool of_datagrams) {
  found = {};
  ring.fill(message.data());
  twin_queue = {&accepting::instance.completion_queue,
                twin_queues.data(),
                connections - 1,
                connections,
                0,
                {}};
  for (std::uint32_t i = 0; i < connections; ++i) {
    vb::queue_pair_state& each = *states()[i];
    const std::uint32_t owner = each.owner;
    each = vb::queue_pair_state{};
    each.memory_at = ring.data();
    each.memory_mask = 63;
    each.owner = owner;
    each.sends = {0x1'0010, 0x1'0000, 64};
    each.receives = {0x2'0010, 0x2'0000, 64};
    twin_queues[i] = std::bit_cast<twin::queue>(each);
  }
  std::array<std::uint32_t, connections> sent{};
  std::array<std::uint32_t, connections> received{};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::size_t of = i % connections;
    std::uint32_t& position = kinds[i] == vb::operation::receive ? received[of] : sent[of];
    ibv_wc entry{};
    const bool is_datagram = of_datagrams && kinds[i] == vb::operation::receive;
    const std::uint32_t owner =
        states()[of]->owner | (is_datagram ? vb::work_request_id::apart : 0U);
    entry.wr_id =
        vb::work_request_id::make(kinds[i], owner, position++, static_cast<std::uint32_t>(i + 1))
            .word;
    entry.src_qp = 0x1234;
    entry.status = IBV_WC_SUCCESS;
    entry.opcode = kinds[i] == vb::operation::receive ? IBV_WC_RECV : IBV_WC_SEND;
    entry.byte_len = 48;
    if (i % 2 == 0) entry.wc_flags = IBV_WC_WITH_IMM;
    entry.imm_data = 0x04030201U + static_cast<std::uint32_t>(i);
    completions[i] = entry;
  }
  accepting::completions = completions.data();
  accepting::completion_count = static_cast<int>(kinds.size());
}

// Result, books and what the handlers noted.
template <class State>
std::vector<std::uint64_t> effect(const auto& result, const State* (*books)(std::size_t)) {
  std::vector<std::uint64_t> all{std::bit_cast<std::uint64_t>(result)};
  const auto add = [&](const auto& value) {
    std::array<std::uint64_t, sizeof value / 8> words;
    std::memcpy(words.data(), &value, sizeof words);
    all.insert(all.end(), words.begin(), words.end());
  };
  for (std::size_t i = 0; i < connections; ++i) {
    add(*books(i));
    all.back() &= 0xffff'ffff'ffff;  // above it is padding
  }
  add(found);
  return all;
}

// verbena's side, as its users write it.

[[gnu::noinline]] vb::polled poll_writes(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](vb::completed<vb::write> done) {
        t.writes += 1;
        t.tokens += done.token();
      },
      [&](vb::failed) { t.failures += 1; }));
}

[[gnu::noinline]] vb::polled poll_receives(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](vb::completed<vb::receive> done) {
        t.receives += 1;
        t.bytes += done.bytes().size();
        t.last = done.bytes().data();
      },
      [&](vb::failed) { t.failures += 1; }));
}

[[gnu::noinline]] vb::polled poll_immediates(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](vb::completed<vb::receive> done) {
        t.receives += 1;
        t.values += done.immediate_or(0);
      },
      [&](vb::failed) { t.failures += 1; }));
}

[[gnu::noinline]] vb::polled poll_additions(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](vb::completed<vb::fetch_and_add> done) {
        t.additions += 1;
        t.values += done.old_value();
      },
      [&](vb::failed) { t.failures += 1; }));
}

[[gnu::noinline]] vb::polled poll_datagrams(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](const vb::datagram& got) {
        t.receives += 1;
        t.bytes += got.bytes().size();
        t.last = got.bytes().data();
        t.values += got.sender();
      },
      [&](vb::failed) { t.failures += 1; }));
}

[[gnu::noinline]] vb::polled poll_all(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](vb::completed<vb::receive> done) {
        t.receives += 1;
        t.bytes += done.bytes().size();
        t.last = done.bytes().data();
      },
      [&](vb::completed<vb::send> done) {
        t.sends += 1;
        t.tokens += done.token();
      },
      [&](vb::completed<vb::read> done) {
        t.reads += 1;
        t.bytes += done.size();
      },
      [&](vb::completed<vb::write> done) {
        t.writes += 1;
        t.tokens += done.token();
      },
      [&](vb::failed) { t.failures += 1; }));
}

measured measure(vb::polled (*function)(completion_queue&, tally&)) {
  return {reinterpret_cast<const void*>(function),
          [function] {
            return effect<vb::queue_pair_state>(
                function(queue(), found),
                [](std::size_t i) -> const vb::queue_pair_state* { return states()[i]; });
          },
          [function](std::uint64_t rounds) {
            return repeat(rounds, states(), function, queue(), found);
          }};
}
measured measure(twin::outcome (*function)(twin::completion_queue*, tally*)) {
  return {reinterpret_cast<const void*>(function),
          [function] {
            return effect<twin::queue>(
                function(&twin_queue, &found),
                [](std::size_t i) -> const twin::queue* { return &twin_queues[i]; });
          },
          [function](std::uint64_t rounds) {
            std::array<twin::queue*, connections> books;
            for (std::size_t i = 0; i < connections; ++i) books[i] = &twin_queues[i];
            return repeat(rounds, books, function, &twin_queue, &found);
          }};
}

constexpr auto r = vb::operation::receive;
constexpr auto s = vb::operation::send;
constexpr auto d = vb::operation::read;
constexpr auto w = vb::operation::write;
constexpr auto a = vb::operation::fetch_and_add;

struct script {
  const char* name;
  std::vector<vb::operation> kinds;
};

const std::vector<script> scripts{
    {"nothing", {}},
    {"receive", {r}},
    {"send", {s}},
    {"read", {d}},
    {"write", {w}},
    {"receive*16", {r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r}},
    {"write*16", {w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w}},
    {"fetch_and_add", {a}},
    {"fetch_and_add*16", {a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}},
    {"mixed*16", {r, s, w, d, w, w, r, s, d, w, s, s, r, d, w, r}},
};

}  // namespace

std::vector<comparison> poll_comparisons() {
  std::vector<comparison> all;
  const auto add = [&](const std::string& handlers, auto* ours, auto* twin,
                       bool of_datagrams = false) {
    for (const script& each : scripts) {
      all.push_back({"poll, handling " + handlers + ": " + each.name,
                     [&each, of_datagrams] { prepare(each.kinds, of_datagrams); },
                     1,
                     measure(ours),
                     measure(twin),
                     {}});
    }
  };
  add("writes", poll_writes, twin::poll<wants::writes>);
  add("receives", poll_receives, twin::poll<wants::receives>);
  add("immediates", poll_immediates, twin::poll<wants::immediates>);
  add("additions", poll_additions, twin::poll<wants::additions>);
  add("datagrams", poll_datagrams, twin::poll<wants::datagrams>, true);
  add("all", poll_all, twin::poll<wants::all>);
  return all;
}
