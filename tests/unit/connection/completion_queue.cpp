// SPDX-License-Identifier: BSL-1.0
#include <poll.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <verbena/chain/post.hpp>
#include <verbena/connection/completion_queue.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/completion/event_driven.hpp>
#include <verbena/policy/completion/spin_then_wait.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/signaling/one_in.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using namespace std::chrono_literals;
using fabricated::call;
using fabricated::kind;
using fabricated::workbench;
using vb::completion::busy_poll;
using vb::completion::event_driven;
using vb::errors::returning;

namespace {

using steady = std::chrono::steady_clock;
using sleeping_queue = vb::completion_queue<event_driven, returning>;
using polling_link = fabricated::link<>;
using sleeping_link = fabricated::link<vb::policies<event_driven>>;

/// Whether a descriptor is readable now.
bool is_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

/// A device and a domain for tests that make their queues themselves.
struct grounds {
  fabricated::device adapter;
  vb::verbs::device opened = adapter.open();
  vb::verbs::protection_domain domain = vb::verbs::protection_domain::create(opened).value();
  fabricated::scratch memory = fabricated::memory(domain);
};

constexpr auto nobody = [](const vb::failed&) {};

}  // namespace

TEST_CASE("a completion reaches the handler of its kind with what was posted") {
  workbench<> test;
  CHECK(test.link.post(test.message().token(1),
                       vb::write(test.memory, fabricated::peer_region()).token(2),
                       vb::read(test.memory.first(77), fabricated::peer_region()).token(3)));
  CHECK(test.link.post(vb::receive(test.memory.subspan(100, 50)).token(4)));
  test.adapter.complete_all(test.link.native(), 33);

  std::string order;
  const auto mine = vb::connection_id{test.link.state->owner};
  const vb::polled found = test.link.queue->poll(vb::on(
      [&](vb::completed<vb::send> done) {
        order += 's';
        CHECK(done.token() == 1);
        CHECK(done.connection() == mine);
      },
      [&](vb::completed<vb::write> done) {
        order += 'w';
        CHECK(done.token() == 2);
      },
      [&](vb::completed<vb::read> done) {
        order += 'r';
        CHECK(done.token() == 3);
        CHECK(done.size() == 77);
      },
      [&](vb::completed<vb::receive> done) {
        order += 'm';
        CHECK(done.token() == 4);
        CHECK(done.size() == 33);
        CHECK(done.bytes().size() == 33);
        CHECK(done.bytes().data() == reinterpret_cast<std::byte*>(test.memory.data() + 100));
      },
      nobody));
  CHECK(order == "swrm");
  CHECK(found);
  CHECK(found.count() == 4);
  CHECK_FALSE(found.error());
  const vb::polled none = test.link.queue->poll(vb::on(nobody));
  CHECK_FALSE(none);
  CHECK_FALSE(none.error());
}

TEST_CASE("kinds without a handler are retired silently") {
  workbench<> test;
  CHECK(test.link.post(test.message(), test.message()));
  test.adapter.complete_all(test.link.native());
  CHECK(test.link.queue->poll(vb::on(nobody)).count() == 2);
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("a completion retires the unsignaled requests before it, and says how many") {
  workbench<vb::signaling::one_in<4>> test;
  for (int i = 0; i < 8; ++i) CHECK(test.link.post(test.message().token(static_cast<unsigned>(i))));
  CHECK(test.adapter.complete_sends(test.link.native()) == 2);
  std::vector<std::uint32_t> seen;
  test.link.queue->poll(vb::on(
      [&](vb::completed<vb::send> done) {
        seen.push_back(done.token());
        CHECK(done.retired() == 4);
      },
      nobody));
  CHECK(seen == std::vector<std::uint32_t>{3, 7});
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("a message received in several pieces has a size but no one place") {
  workbench<> test;
  CHECK(test.link.post(vb::receive(vb::pieces{test.memory.first(4), test.memory.last(4)})));
  test.adapter.complete_receive(test.link.native(), 6);
  bool seen = false;
  test.link.queue->poll(vb::on(
      [&](vb::completed<vb::receive> done) {
        seen = true;
        CHECK(done.size() == 6);
        CHECK(done.bytes().empty());
      },
      nobody));
  CHECK(seen);
}

TEST_CASE("a completion that comes twice retires nothing the second time") {
  workbench<> test;
  CHECK(test.link.post(test.message(), test.message()));
  ibv_wc again{};
  again.wr_id = test.send_id(0).word;
  again.opcode = IBV_WC_SEND;
  test.adapter.push(test.link.queue->native(), again);
  test.adapter.push(test.link.queue->native(), again);
  test.drain();
  CHECK(test.link.state->sends.outstanding() == 1);
}

TEST_CASE("FC-07 garbage in the undefined fields of failed completions changes nothing") {
  grounds on;
  // The adapter fills what is undefined with other bits in every round.
  for (int round = 0; round < 50; ++round) {
    polling_link link{on.domain};
    for (std::uint32_t i = 0; i < 2; ++i) {
      CHECK(link.post(vb::receive(on.memory).token(100 + i)));
      CHECK(link.post(vb::send(on.memory).token(i)));
      CHECK(link.post(vb::read(on.memory, fabricated::peer_region()).token(10 + i)));
    }
    on.adapter.flush(link.native());
    std::multiset<std::pair<std::string, std::uint32_t>> seen;
    int first = 0;
    while (link.queue->poll(vb::on(
        [&](vb::failed each) {
          seen.emplace(to_string(each.what()), each.token());
          first += int{each.breaks_connection()};
          CHECK(each.status() == vb::status::flushed);
          CHECK(each.vendor_error() == 0);
          CHECK(each.connection() == vb::connection_id{link.state->owner});
        },
        [](vb::completed<vb::send>) { FAIL("a failure taken for a send"); },
        [](vb::completed<vb::receive>) { FAIL("a failure taken for a receive"); }))) {
    }
    CHECK(seen == std::multiset<std::pair<std::string, std::uint32_t>>{{"receive", 100},
                                                                       {"receive", 101},
                                                                       {"send", 0},
                                                                       {"send", 1},
                                                                       {"read", 10},
                                                                       {"read", 11}});
    CHECK(first == 1);
    CHECK(link.state->sends.outstanding() == 0);
    CHECK(link.state->receives.outstanding() == 0);
  }
}

TEST_CASE("a completion of a place that is not there finds nobody") {
  workbench<> test;
  CHECK(test.link.post(test.message()));
  for (const std::uint32_t owner : {1U, 0xffffU, 0x1'0000U, 0xf'ffffU}) {
    ibv_wc stranger{};
    stranger.wr_id = vb::work_request_id::make(vb::operation::send, owner, 0, 0).word;
    test.adapter.push(test.link.queue->native(), stranger);
    stranger.status = IBV_WC_GENERAL_ERR;
    test.adapter.push(test.link.queue->native(), stranger);
  }
  test.link.queue->poll(vb::on([](vb::completed<vb::send>) { FAIL("told of a stranger"); },
                               [](vb::failed) { FAIL("told of a stranger"); }));
  CHECK_FALSE(test.link.state->broken());
  CHECK(test.link.state->sends.outstanding() == 1);
}

TEST_CASE("FC-07 garbage in the undefined fields of successful completions changes nothing") {
  // wc.opcode is not what decides: the word written when posting is.
  workbench<> test;
  CHECK(test.link.post(vb::receive(test.memory)));
  CHECK(test.link.post(test.message()));
  ibv_wc odd{};
  odd.wr_id = test.receives()[0].id;
  odd.opcode = IBV_WC_SEND;
  odd.byte_len = 5;
  test.adapter.push(test.link.queue->native(), odd);
  odd.wr_id = test.send_id(0).word;
  odd.opcode = IBV_WC_RECV;
  test.adapter.push(test.link.queue->native(), odd);
  std::string order;
  test.link.queue->poll(vb::on([&](vb::completed<vb::receive>) { order += 'm'; },
                               [&](vb::completed<vb::send>) { order += 's'; }, nobody));
  CHECK(order == "ms");
}

TEST_CASE("a failure carries status and vendor code, also those of a later time") {
  workbench<> test;
  CHECK(test.link.post(test.message().token(5), test.message().token(6)));
  test.adapter.fail_send(test.link.native(), IBV_WC_TM_RNDV_INCOMPLETE, 0xabcd);
  std::vector<std::string> seen;
  test.link.queue->poll(vb::on([&](vb::failed each) {
    seen.push_back(make_error_code(each.status()).message() +
                   (each.breaks_connection() ? "!" : ""));
    if (each.token() == 5) CHECK(each.vendor_error() == 0xabcd);
  }));
  CHECK(seen ==
        std::vector<std::string>{
            "completion status " + std::to_string(IBV_WC_TM_RNDV_INCOMPLETE) + "!", "flushed"});
  CHECK(test.link.state->failure == static_cast<vb::status>(IBV_WC_TM_RNDV_INCOMPLETE));
}

TEST_CASE("a failure reaches its function itself, not a copy of it that could differ") {
  struct all_kinds {
    unsigned failures = 0;
    void operator()(vb::failed) { ++failures; }
    void operator()(vb::completed<vb::send>) const {}
  };
  struct heavy {
    std::array<unsigned*, 4> to{};
    void operator()(vb::failed) const { ++*to[3]; }
  };
  workbench<> test;
  CHECK(test.link.post(test.message(), test.message(), test.message()));
  test.adapter.fail_send(test.link.native(), IBV_WC_REM_ACCESS_ERR);
  SECTION("counting in itself") {
    all_kinds own;
    while (test.link.queue->poll(own)) {
    }
    CHECK(own.failures == 3);
  }
  SECTION("counting in itself, in a set") {
    auto set = vb::on([count = 0U](vb::failed) mutable { return ++count; });
    while (test.link.queue->poll(set)) {
    }
    CHECK(set(vb::failed{{0}, vb::status::flushed, 0, false}) == 4);
  }
  SECTION("large") {
    unsigned failures = 0;
    const auto set = vb::on(heavy{{nullptr, nullptr, nullptr, &failures}});
    while (test.link.queue->poll(set)) {
    }
    CHECK(failures == 3);
  }
  SECTION("one function for everything beside a better one") {
    unsigned failures = 0;
    unsigned others = 0;
    auto set = vb::on([&](const auto&) { ++others; }, [&](const vb::failed&) { ++failures; });
    while (test.link.queue->poll(set)) {
    }
    CHECK(failures == 3);
    CHECK(others == 0);
  }
}

TEST_CASE("FC-04 each connection reports that it is broken exactly once, and the others go on") {
  grounds on;
  const auto queue = vb::completion_queue_core<busy_poll>::create(on.opened, {64, 2}, {}).value();
  polling_link first{on.domain, queue};
  polling_link second{on.domain, queue};
  CHECK(first.post(vb::send(on.memory), vb::send(on.memory)));
  CHECK(first.post(vb::receive(on.memory)));
  CHECK(second.post(vb::send(on.memory)));
  on.adapter.fail_send(first.native(), IBV_WC_REM_ACCESS_ERR);
  on.adapter.complete_all(second.native());
  int breaks = 0;
  int good = 0;
  while (queue->poll(vb::on(
      [&](vb::failed each) {
        CHECK(each.connection() == vb::connection_id{first.state->owner});
        breaks += int{each.breaks_connection()};
      },
      [&](vb::completed<vb::send> done) {
        CHECK(done.connection() == vb::connection_id{second.state->owner});
        ++good;
      }))) {
  }
  CHECK(breaks == 1);
  CHECK(good == 1);
  CHECK(first.post(vb::send(on.memory)).error() == vb::errc::broken);
  CHECK(second.post(vb::send(on.memory)));
}

TEST_CASE("FC-04 a handler may post, and what it posts after a failure is refused") {
  workbench<> test;
  CHECK(test.link.post(vb::receive(test.memory), vb::receive(test.memory)));
  CHECK(test.link.post(test.message()));
  test.adapter.complete_receive(test.link.native(), 1);
  const auto repost =
      vb::on([&](vb::completed<vb::receive>) { CHECK(test.link.post(vb::receive(test.memory))); },
             [&](vb::failed) {
               CHECK(test.link.post(vb::receive(test.memory)).error() == vb::errc::broken);
             });
  test.link.queue->poll(repost);
  CHECK(test.receives().size() == 3);
  test.adapter.fail_receive(test.link.native(), IBV_WC_LOC_LEN_ERR);
  while (test.link.queue->poll(repost)) {
  }
  CHECK(test.receives().size() == 3);
  CHECK(test.link.state->sends.outstanding() + test.link.state->receives.outstanding() == 0);
}

TEST_CASE("completions of a queue pair that is gone find nobody") {
  grounds on;
  const auto queue = vb::completion_queue_core<busy_poll>::create(on.opened, {64, 1}, {}).value();
  int told = 0;
  const auto note = vb::on([&](vb::completed<vb::send>) { ++told; }, [&](vb::failed) { ++told; });
  // One more than there are generations would be found again: a completion that late is none.
  for (int generation = 0; generation < 15; ++generation) {
    {
      polling_link old{on.domain, queue};
      CHECK(old.post(vb::send(on.memory), vb::send(on.memory)));
      on.adapter.complete_sends(old.native(), 1);
      on.adapter.flush(old.native());
    }
    polling_link next{on.domain, queue};
    CHECK(next.post(vb::send(on.memory)));
    while (queue->poll(note)) {
    }
    CHECK(told == 0);
    CHECK_FALSE(next.state->broken());
    CHECK(next.state->sends.outstanding() == 1);
    on.adapter.complete_all(next.native());
    queue->poll(note);
    CHECK(std::exchange(told, 0) == 1);
  }
}

TEST_CASE("a queue that can not be polled breaks every connection on it") {
  grounds on;
  const auto queue = vb::completion_queue_core<busy_poll>::create(on.opened, {64, 2}, {}).value();
  polling_link first{on.domain, queue};
  polling_link second{on.domain, queue};
  const auto [returned, expected] =
      GENERATE(std::pair{-1, std::errc::io_error}, std::pair{-ENODEV, std::errc::no_such_device});
  on.adapter.refuse.add(call::poll_cq, returned);
  const vb::polled lost = queue->poll(vb::on(nobody));
  CHECK_FALSE(lost);
  CHECK(lost.error() == expected);
  CHECK(first.post(vb::send(on.memory)).error() == vb::errc::broken);
  CHECK(second.post(vb::receive(on.memory)).error() == vb::errc::broken);
  CHECK(on.adapter.count(call::post_send) + on.adapter.count(call::post_recv) == 0);

  on.adapter.refuse.add(call::poll_cq, returned);
  CHECK(queue->wait(steady::now() + 10s, vb::on(nobody)).error() == expected);
}

TEST_CASE("FC-08 a queue takes no more than it has room for, and says what is taken") {
  grounds on;
  const auto queue = vb::completion_queue_core<busy_poll>::create(on.opened, {70, 3}, {}).value();
  std::optional<polling_link> first;
  first.emplace(on.domain, queue);  // 16 and 16
  const polling_link second{on.domain, queue};
  CHECK(queue->reserved() == 64);
  const auto refused = queue->attach(7);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::capacity);
  for (const char* part : {"7 requests", "70 entries", "64 of them"}) {
    CHECK(mentions(refused.error(), part));
  }
  first.reset();
  CHECK(queue->reserved() == 32);
  const polling_link third{on.domain, queue};
  CHECK(queue->reserved() == 64);
}

TEST_CASE("FC-08 a queue takes no more connections than it was made for") {
  grounds on;
  const auto queue = vb::completion_queue_core<busy_poll>::create(on.opened, {1000, 2}, {}).value();
  const polling_link first{on.domain, queue};
  const polling_link second{on.domain, queue};
  const auto refused = queue->attach(1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::capacity);
  CHECK(mentions(refused.error(), "for 2"));
}

TEST_CASE("FC-08 a queue of a size that can not be is refused, and never shrunk") {
  grounds on;
  on.adapter.attributes.max_cqe = 100;
  const auto small = on.adapter.open();
  using core = vb::completion_queue_core<busy_poll>;
  for (const std::uint32_t entries : {0U, 101U, 0x8000'0000U, 0xffff'ffffU}) {
    const auto refused = core::create(small, {entries, 1}, {});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == vb::errc::capacity);
    CHECK(mentions(refused.error(), std::to_string(entries) + " entries"));
    CHECK(mentions(refused.error(), "1 to 100"));
  }
  for (const std::uint32_t connections : {0U, 65537U}) {
    const auto refused = core::create(small, {10, connections}, {});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == vb::errc::capacity);
  }
  CHECK(on.adapter.count(call::create_cq) == 0);
  CHECK(core::create(small, {100, 65536}, {}).value()->entries() == 100);
}

TEST_CASE(
    "a completion queue that can not be made is an error with its errno, and leaves nothing") {
  grounds on;
  on.adapter.refuse.add(call::create_cq, ENOMEM);
  const auto refused = sleeping_queue::open(on.opened);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::not_enough_memory);
  CHECK(on.adapter.live(kind::channel) == 0);
  on.adapter.refuse.add(call::create_comp_channel, EMFILE);
  CHECK(sleeping_queue::open(on.opened).error() == std::errc::too_many_files_open);
}

TEST_CASE("FC-09 one event, three batches: all come before anybody sleeps") {
  grounds on;
  auto queue = sleeping_queue::open(on.opened, {64 * 32, 16}).value();
  std::vector<std::unique_ptr<sleeping_link>> links;
  for (int i = 0; i < 16; ++i) {
    links.push_back(std::make_unique<sleeping_link>(on.domain, queue.shared()));
  }
  CHECK_FALSE(queue.prepare_to_sleep(vb::on(nobody)));
  for (int i = 0; i < 40; ++i) {
    auto& each = *links[static_cast<std::size_t>(i) % links.size()];
    CHECK(each.post(vb::send(on.memory)));
    on.adapter.complete_all(each.native());
  }
  CHECK(is_readable(queue.descriptor()));
  CHECK(on.adapter.of(queue.native_handle()).armed_count == 1);

  unsigned seen = 0;
  SECTION("by waiting") {
    while (const vb::polled found = queue.wait(50ms, vb::on(nobody))) seen += found.count();
  }
  SECTION("by a loop of the program's own") {
    while (const vb::polled found = queue.prepare_to_sleep(vb::on(nobody))) seen += found.count();
  }
  CHECK(seen == 40);
  CHECK_FALSE(is_readable(queue.descriptor()));
}

TEST_CASE("FC-10 events of two queues on one channel are acknowledged each on its own") {
  grounds on;
  auto channel = vb::verbs::completion_channel::create(on.opened).value();
  std::optional first = sleeping_queue::open(on.opened, {64, 1}, channel).value();
  std::optional second = sleeping_queue::open(on.opened, {64, 1}, channel).value();
  const ibv_cq* const natives[] = {first->native_handle(), second->native_handle()};
  std::optional<sleeping_link> one;
  std::optional<sleeping_link> two;
  one.emplace(on.domain, first->shared());
  two.emplace(on.domain, second->shared());
  CHECK(natives[0]->channel == natives[1]->channel);
  for (int round = 0; round < 100; ++round) {
    while (first->prepare_to_sleep(vb::on(nobody)) || second->prepare_to_sleep(vb::on(nobody))) {
    }
    CHECK(one->post(vb::send(on.memory)));
    CHECK(two->post(vb::send(on.memory)));
    on.adapter.complete_all(two->native());
    on.adapter.complete_all(one->native());
    // The first takes the events of both.
    CHECK(first->wait(1s, vb::on(nobody)).count() == 1);
    CHECK(second->wait(1s, vb::on(nobody)).count() == 1);
  }
  const auto& behind = on.adapter.of(second->native_handle());
  CHECK(behind.events_taken > 64);
  CHECK(behind.events_acknowledged > 0);
  CHECK(behind.events_acknowledged < behind.events_taken);
  // Destroying acknowledges the rest: the adapter notices when it would block.
  SECTION("the one that took the events goes first") {
    one.reset();
    first.reset();
    two.reset();
    second.reset();
  }
  SECTION("the other goes first") {
    two.reset();
    second.reset();
    one.reset();
    first.reset();
  }
  CHECK(on.adapter.live(kind::completion_queue) == 0);
  CHECK(on.adapter.take_violations().empty());
}

TEST_CASE("FC-10 a queue goes while an event of it is still on the channel") {
  grounds on;
  auto channel = vb::verbs::completion_channel::create(on.opened).value();
  std::optional first = sleeping_queue::open(on.opened, {64, 1}, channel).value();
  std::optional second = sleeping_queue::open(on.opened, {64, 1}, channel).value();
  {
    sleeping_link two{on.domain, second->shared()};
    CHECK_FALSE(second->prepare_to_sleep(vb::on(nobody)));
    CHECK(two.post(vb::send(on.memory)));
    on.adapter.complete_all(two.native());
  }
  second.reset();
  CHECK_FALSE(first->prepare_to_sleep(vb::on(nobody)));
  CHECK(first->wait(1ms, vb::on(nobody)).timed_out());
}

TEST_CASE(
    "FC-12 a wait is ended by stop() from another thread, and every later one until resume()") {
  grounds on;
  auto queue = sleeping_queue::open(on.opened).value();
  std::thread other{[&] {
    std::this_thread::sleep_for(20ms);
    queue.stop();
  }};
  const auto begun = steady::now();
  CHECK(queue.wait(20s, vb::on(nobody)).stopped());
  other.join();
  CHECK(queue.wait(20s, vb::on(nobody)).stopped());
  CHECK(steady::now() - begun < 10s);
  queue.resume();
  CHECK(queue.wait(1ms, vb::on(nobody)).timed_out());
}

TEST_CASE("FC-12 a busy wait is ended by stop() from another thread") {
  grounds on;
  auto queue = vb::completion_queue<busy_poll, returning>::open(on.opened).value();
  std::thread other{[&] {
    std::this_thread::sleep_for(20ms);
    queue.stop();
  }};
  const auto begun = steady::now();
  CHECK(queue.wait(20s, vb::on(nobody)).stopped());
  other.join();
  CHECK(steady::now() - begun < 10s);
}

TEST_CASE("FC-12 a completion from another thread wakes a sleeper") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  CHECK(test.link.post(test.message()));
  std::thread other{[&] {
    std::this_thread::sleep_for(20ms);
    test.adapter.complete_all(test.link.native());
  }};
  const auto begun = steady::now();
  CHECK(queue.wait(20s, vb::on(nobody)).count() == 1);
  other.join();
  CHECK(steady::now() - begun < 10s);
}

TEST_CASE("FC-12 a wait lasts as long as it may and no longer") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  const auto begun = steady::now();
  CHECK(queue.wait(30ms, vb::on(nobody)).timed_out());
  const auto lasted = steady::now() - begun;
  CHECK(lasted >= 30ms);
  CHECK(lasted < 10s);
  CHECK(queue.wait(0ns, vb::on(nobody)).timed_out());
  CHECK(queue.wait(-1s, vb::on(nobody)).timed_out());
}

TEMPLATE_TEST_CASE("FC-12 the longest wait is not over before it began", "", busy_poll,
                   event_driven) {
  workbench<TestType> test;
  vb::completion_queue<TestType, returning> queue{test.link.queue};
  CHECK(test.link.post(test.message()));
  std::thread other{[&] {
    std::this_thread::sleep_for(20ms);
    test.adapter.complete_all(test.link.native());
  }};
  const vb::polled found = queue.wait(std::chrono::nanoseconds::max(), vb::on(nobody));
  CHECK(found.count() == 1);
  CHECK_FALSE(found.error());
  other.join();
}

TEST_CASE("FC-12 a signal does not end a wait") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  struct sigaction quiet{};
  quiet.sa_handler = [](int) {};
  struct sigaction before{};
  REQUIRE(::sigaction(SIGUSR1, &quiet, &before) == 0);
  CHECK(test.link.post(test.message()));
  const pthread_t waiting = ::pthread_self();
  std::thread other{[&] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(5ms);
      ::pthread_kill(waiting, SIGUSR1);
    }
    test.adapter.complete_all(test.link.native());
  }};
  const vb::polled found = queue.wait(20s, vb::on(nobody));
  CHECK(found.count() == 1);
  CHECK_FALSE(found.error());
  other.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("FC-12 an event whose completions are gone already wakes nobody twice") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  CHECK_FALSE(queue.prepare_to_sleep(vb::on(nobody)));
  CHECK(test.link.post(test.message()));
  test.adapter.complete_all(test.link.native());
  CHECK(queue.poll(vb::on(nobody)).count() == 1);
  REQUIRE(is_readable(queue.descriptor()));
  SECTION("by waiting") {
    const unsigned before = test.adapter.count(call::poll_cq);
    CHECK(queue.wait(20ms, vb::on(nobody)).timed_out());
    CHECK(test.adapter.count(call::poll_cq) - before < 10);
  }
  SECTION("by a loop of the program's own") { CHECK_FALSE(queue.prepare_to_sleep(vb::on(nobody))); }
  CHECK_FALSE(is_readable(queue.descriptor()));
  CHECK(test.adapter.of(queue.native_handle()).armed == fabricated::arming::any);
}

TEST_CASE("FC-12 what comes between arming and sleeping is not slept through") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  // Before the queue was ever armed: no event tells of it.
  CHECK(test.link.post(test.message()));
  test.adapter.complete_all(test.link.native());
  REQUIRE_FALSE(is_readable(queue.descriptor()));
  SECTION("by waiting") { CHECK(queue.wait(20s, vb::on(nobody)).count() == 1); }
  SECTION("by a loop of the program's own") {
    CHECK(queue.prepare_to_sleep(vb::on(nobody)).count() == 1);
    CHECK_FALSE(queue.prepare_to_sleep(vb::on(nobody)));
  }
}

TEST_CASE("FC-12 a loop over two queues on one channel sleeps through neither's completion") {
  grounds on;
  auto channel = vb::verbs::completion_channel::create(on.opened).value();
  auto first = sleeping_queue::open(on.opened, {64, 1}, channel).value();
  auto second = sleeping_queue::open(on.opened, {64, 1}, channel).value();
  sleeping_link one{on.domain, first.shared()};
  CHECK(one.post(vb::send(on.memory)));

  // The loop prepares each queue and sleeps when both are empty. In between the first completes.
  CHECK_FALSE(first.prepare_to_sleep(vb::on(nobody)));
  on.adapter.complete_all(one.native());
  const vb::polled busy = second.prepare_to_sleep(vb::on(nobody));
  CHECK(busy);
  CHECK(busy.count() == 0);
  CHECK_FALSE(busy.error());
  CHECK(first.prepare_to_sleep(vb::on(nobody)).count() == 1);
  CHECK_FALSE(second.prepare_to_sleep(vb::on(nobody)));
  CHECK_FALSE(first.prepare_to_sleep(vb::on(nobody)));
  CHECK_FALSE(is_readable(channel.native_handle()->fd));
}

TEST_CASE("arming that is refused ends a wait with its errno") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  test.adapter.refuse.add(call::req_notify_cq, GENERATE(ENODEV, -ENODEV));
  const vb::polled failed = queue.prepare_to_sleep(vb::on(nobody));
  CHECK_FALSE(failed);
  CHECK(failed.error() == std::errc::no_such_device);
  test.adapter.refuse.add(call::req_notify_cq, GENERATE(ENODEV, -ENODEV));
  errno = EPIPE;  // of an earlier call
  CHECK(queue.wait(20s, vb::on(nobody)).error() == std::errc::no_such_device);
}

TEST_CASE("moving a completion queue changes nothing for completions in flight") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  CHECK(test.link.post(test.message()));
  CHECK_FALSE(queue.prepare_to_sleep(vb::on(nobody)));
  sleeping_queue moved = std::move(queue);
  CHECK(queue.native_handle() == nullptr);  // NOLINT(bugprone-use-after-move)
  test.adapter.complete_all(test.link.native());
  CHECK(moved.wait(20s, vb::on(nobody)).count() == 1);
}

TEST_CASE("FC-22 what a completion queue was moved from answers, and stays so") {
  grounds on;
  auto queue = sleeping_queue::open(on.opened, {64, 1}).value();
  auto moved = std::move(queue);
  for (int i = 0; i < 2; ++i) {
    CHECK(queue.poll(vb::on(nobody)).error() == vb::errc::moved_from);  // NOLINT
    CHECK(queue.wait(1s, vb::on(nobody)).error() == vb::errc::moved_from);
    CHECK(queue.prepare_to_sleep(vb::on(nobody)).error() == vb::errc::moved_from);
  }
  CHECK(queue.native_handle() == nullptr);
  CHECK(queue.descriptor() == -1);
  queue.stop();
  queue.resume();
  queue = std::move(moved);
  CHECK_FALSE(queue.poll(vb::on(nobody)).error());
}

TEST_CASE("a channel of another opened device is refused") {
  grounds on;
  const grounds elsewhere;
  const auto channel = vb::verbs::completion_channel::create(elsewhere.opened).value();
  CHECK(sleeping_queue::open(on.opened, {64, 1}, channel).error() == vb::errc::mismatch);
}

TEST_CASE("FC-12 a negative wait is over at once, however negative") {
  workbench<event_driven> test;
  sleeping_queue queue{test.link.queue};
  CHECK(queue.wait(std::chrono::nanoseconds::min(), vb::on(nobody)).timed_out());
  CHECK(queue.wait(-1s, vb::on(nobody)).timed_out());
}

TEST_CASE("spin_then_wait polls as often as its name says, then sleeps until something comes") {
  using spinning = vb::completion::spin_then_wait<50>;
  workbench<spinning> test;
  vb::completion_queue<spinning, returning> queue{test.link.queue};
  CHECK(queue.wait(20ms, vb::on(nobody)).timed_out());
  const unsigned polls = test.adapter.count(call::poll_cq);
  CHECK(polls >= 50);
  CHECK(polls < 60);
  CHECK(test.link.post(test.message()));
  std::thread other{[&] {
    std::this_thread::sleep_for(10ms);
    test.adapter.complete_all(test.link.native());
  }};
  CHECK(queue.wait(20s, vb::on(nobody)).count() == 1);
  other.join();
  CHECK(test.adapter.count(call::poll_cq) < polls + 60);
}
