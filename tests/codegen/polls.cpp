// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <verbena/connection/completion_queue.hpp>
#include <verbena/connection/receive_slots.hpp>
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
constexpr std::uint32_t places = connections + 1;  // the last is a ring's
std::array<std::byte*, 128> ring;
alignas(8) std::array<std::byte, 64> message{std::byte{7}};
std::array<ibv_wc, twin::batch> completions;
tally found;

completion_queue& queue() {
  static completion_queue made{accepting::open(), {1024, places}};
  return made;
}
std::array<vb::queue_pair_state*, places>& states() {
  static std::array<vb::queue_pair_state*, places> made = [] {
    std::array<vb::queue_pair_state*, places> all;
    for (auto*& each : all) each = queue().shared()->attach(128).value();
    return all;
  }();
  return made;
}

std::array<twin::queue, places> twin_queues;
twin::completion_queue twin_queue;

// The ring, of which a slot is posted again with fifteen others.
constexpr vb::receive_slots::layout layout{.slots = 64, .bytes = 64, .stride = 64, .batch = 16};
constexpr std::uint32_t first_number = 0x100;  // of the connections' queue pairs
std::optional<vb::receive_slots> slots;
std::array<ibv_recv_wr, layout.slots> twin_work;
std::array<twin::ring::place, std::bit_ceil(std::size_t{2} * places)> twin_places;
twin::ring twin_ring;
std::vector<std::uint64_t> posted_again;

int note_receives(ibv_srq*, ibv_recv_wr* work, ibv_recv_wr**) {
  for (; work != nullptr; work = work->next) posted_again.push_back(work->wr_id);
  return 0;
}

std::uint64_t message_id(std::uint32_t slot) {
  return vb::work_request_id::make(vb::operation::shared_receive,
                                   states()[connections]->owner | vb::work_request_id::apart, slot,
                                   0)
      .word;
}

void prepare_ring() {
  static const auto domain = vb::verbs::protection_domain::create(accepting::open()).value();
  vb::queue_pair_state& own = *states()[connections];
  slots.reset();  // first: so that the next has its memory
  slots.emplace(
      vb::verbs::shared_receive_queue::create(domain, layout.slots, 1).value(),
      vb::receive_slots::memory_type::create(domain, layout.slots * layout.stride).value(), layout,
      own.owner, places);
  own.slots = &*slots;
  twin_places = {};
  for (std::uint32_t i = 0; i < connections; ++i) {
    slots->queue_pairs.add(first_number + i, *states()[i]);
    twin_places[(first_number + i) % twin_places.size()] = {&twin_queues[i], first_number + i};
  }
  for (std::uint32_t i = 0; i < layout.slots; ++i) twin_work[i].wr_id = message_id(i);
  twin_ring = {twin_places.data(),
               twin_places.size() - 1,
               reinterpret_cast<char*>(slots->memory_at(0)),
               layout.stride,
               layout.slots,
               layout.batch,
               slots->native_handle(),
               twin_work.data(),
               nullptr,
               0};
  twin_queues[connections].owner = own.owner;
  twin_queues[connections].ring = &twin_ring;
  posted_again.clear();
  accepting::instance.context.ops.post_srq_recv = note_receives;
}

/// Completions of these kinds, each of the next connection's next request; their receives are
/// those of datagrams or not.
void prepare(std::span<const vb::operation> kinds, bool of_datagrams) {
  found = {};
  ring.fill(message.data());
  twin_queue = {&accepting::instance.completion_queue,
                twin_queues.data(),
                std::bit_ceil(places) - 1,
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
  prepare_ring();
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
    if (kinds[i] == vb::operation::shared_receive)
      entry.wr_id = message_id(static_cast<std::uint32_t>(i));
    entry.qp_num = first_number + static_cast<std::uint32_t>(of);
    entry.src_qp = 0x1234;
    entry.status = IBV_WC_SUCCESS;
    const bool is_sent =
        kinds[i] != vb::operation::receive && kinds[i] != vb::operation::shared_receive;
    entry.opcode = is_sent ? IBV_WC_SEND : IBV_WC_RECV;
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
  all.insert(all.end(), posted_again.begin(), posted_again.end());
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

[[gnu::noinline]] vb::polled poll_messages(completion_queue& from, tally& t) {
  return from.poll(vb::on(
      [&](const vb::message& got) {
        t.receives += 1;
        t.bytes += got.bytes().size();
        t.last = got.bytes().data();
        t.values += static_cast<std::uint32_t>(got.connection());
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
            std::array<twin::queue*, places> books;
            for (std::size_t i = 0; i < places; ++i) books[i] = &twin_queues[i];
            return repeat(rounds, books, function, &twin_queue, &found);
          }};
}

constexpr auto r = vb::operation::receive;
constexpr auto s = vb::operation::send;
constexpr auto d = vb::operation::read;
constexpr auto w = vb::operation::write;
constexpr auto a = vb::operation::fetch_and_add;
constexpr auto m = vb::operation::shared_receive;

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
const std::vector<script> ring_scripts{
    {"nothing", {}},
    {"message", {m}},
    {"message*16", {m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m}},
    {"write*16", {w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w}},
    {"mixed*16", {m, s, w, m, w, m, m, s, m, w, s, m, m, d, m, m}},
};

}  // namespace

std::vector<comparison> poll_comparisons() {
  std::vector<comparison> all;
  const auto add = [&](const std::string& handlers, auto* ours, auto* twin,
                       const std::vector<script>& of = scripts, bool of_datagrams = false) {
    for (const script& each : of) {
      const auto messages = std::count(each.kinds.begin(), each.kinds.end(), m);
      all.push_back({"poll, handling " + handlers + ": " + each.name,
                     [&each, of_datagrams] { prepare(each.kinds, of_datagrams); },
                     1U + static_cast<unsigned>(messages) / layout.batch,
                     measure(ours),
                     measure(twin),
                     {}});
    }
  };
  add("writes", poll_writes, twin::poll<wants::writes>);
  add("receives", poll_receives, twin::poll<wants::receives>);
  add("immediates", poll_immediates, twin::poll<wants::immediates>);
  add("additions", poll_additions, twin::poll<wants::additions>);
  add("datagrams", poll_datagrams, twin::poll<wants::datagrams>, scripts, true);
  add("messages", poll_messages, twin::poll<wants::messages>, ring_scripts);
  add("all", poll_all, twin::poll<wants::all>);
  return all;
}
