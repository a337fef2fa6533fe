// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <stdexcept>
#include <vector>

#include <verbena/connection/completion_queue.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/policy/completion/event_driven.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"

namespace vb = verbena;

using namespace std::chrono_literals;
using fabricated::call;
using fabricated::workbench;
using vb::completion::event_driven;

namespace {

enum class way { polling, waiting, preparing_to_sleep };

/// Throws at the completions whose tokens are even, having noted them.
struct thrower {
  std::vector<std::uint32_t>& seen;

  void note(std::uint32_t token) const {
    seen.push_back(token);
    if (token % 2 == 0) throw std::runtime_error{"handler"};
  }
};

}  // namespace

TEST_CASE("FC-04 a handler that throws loses no completion and no order") {
  workbench<event_driven> test{{.send_depth = 64}};
  for (std::uint32_t i = 0; i < 40; ++i) CHECK(test.link.post(test.message().token(i)));
  test.adapter.complete_all(test.link.native());

  std::vector<std::uint32_t> seen;
  const thrower handler{seen};
  const auto handle =
      vb::on([&](vb::completed<vb::send> done) { handler.note(done.token()); }, [](vb::failed) {});
  vb::completion_queue<event_driven> queue{test.link.queue};
  const way by = GENERATE(way::polling, way::waiting, way::preparing_to_sleep);
  const auto step = [&] {
    if (by == way::polling) return bool{queue.poll(handle)};
    if (by == way::waiting) return bool{queue.wait(1ms, handle)};
    return bool{queue.prepare_to_sleep(handle)};
  };
  int thrown = 0;
  for (bool more = true; more;) {
    try {
      more = step();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  std::vector<std::uint32_t> all(40);
  for (std::uint32_t i = 0; i < 40; ++i) all[i] = i;
  CHECK(seen == all);
  CHECK(thrown == 20);
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("FC-04 a handler that throws at a failure loses none of those behind it") {
  workbench<> test;
  CHECK(test.link.post(vb::receive(test.memory).token(100)));
  CHECK(test.link.post(test.message().token(0), test.message().token(2)));
  test.adapter.fail_send(test.link.native(), IBV_WC_RETRY_EXC_ERR);

  std::vector<std::uint32_t> seen;
  int breaks = 0;
  const thrower handler{seen};
  const auto handle = vb::on([&](vb::failed each) {
    breaks += int{each.breaks_connection()};
    handler.note(each.token());
  });
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(test.link.queue->poll(handle), std::runtime_error);
  CHECK_FALSE(test.link.queue->poll(handle));
  CHECK(seen == std::vector<std::uint32_t>{0, 2, 100});
  CHECK(breaks == 1);
  // The batch was taken from the provider once.
  CHECK(test.adapter.count(call::poll_cq) == 2);
}

TEST_CASE("FC-04 order survives both a throwing handler and a connection that closes") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto memory = fabricated::memory(domain);
  using core = vb::completion_queue_core<vb::completion::busy_poll>;
  const auto queue = core::create(opened, {128, 2}, {}).value();
  fabricated::link<> stays{domain, queue, {.send_depth = 64}};
  fabricated::link<> goes{domain, queue};
  for (std::uint32_t i = 0; i < 40; ++i) CHECK(stays.post(vb::send(memory.first(8)).token(i)));
  adapter.complete_all(stays.native());
  const auto nobody = vb::on([](vb::failed) {});
  // Three batches are put aside, more than one poll hands out.
  for (int i = 0; i < 3; ++i) CHECK_FALSE(queue->poll_only(*goes.state, nobody));

  std::vector<std::uint32_t> seen;
  const thrower handler{seen};
  const auto handle =
      vb::on([&](vb::completed<vb::send> done) { handler.note(done.token()); }, [](vb::failed) {});
  for (bool more = true; more;) {
    try {
      more = bool{queue->poll(handle)};
    } catch (const std::runtime_error&) {
    }
  }
  std::vector<std::uint32_t> all(40);
  for (std::uint32_t i = 0; i < 40; ++i) all[i] = i;
  CHECK(seen == all);
}

TEST_CASE("FC-04 what a throwing handler left over goes with its queue pair") {
  workbench<> test;
  std::vector<std::uint32_t> seen;
  const thrower handler{seen};
  const auto handle =
      vb::on([&](vb::completed<vb::send> done) { handler.note(done.token()); }, [](vb::failed) {});
  CHECK(test.link.post(test.message().token(0), test.message().token(1)));
  test.adapter.complete_all(test.link.native());
  CHECK_THROWS_AS(test.link.queue->poll(handle), std::runtime_error);
  test.link.state->owner += 0x1'0000;  // as detach() does
  test.link.queue->poll(handle);
  CHECK(seen == std::vector<std::uint32_t>{0});
}

TEST_CASE("under errors::throwing a completion queue is made by a constructor, which throws") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  CHECK_THROWS_AS((vb::completion_queue<>{opened, {0, 1}}), vb::failure);
  const vb::completion_queue<> made{opened};
  CHECK(made.native_handle()->cqe == 256);
}
