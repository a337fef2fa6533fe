// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <pthread.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/cm_link.hpp"

namespace {

constexpr auto nobody = [](const vb::failed&) {};

}  // namespace

TEMPLATE_TEST_CASE("FC-12 a wait is stopped from another thread, ends in time, outlasts a signal",
                   "[waiting]", vb::completion::busy_poll, vb::completion::event_driven,
                   vb::completion::spin_then_wait<1000>) {
  VERBENA_DEVICE_OR_SKIP(device);
  vb::completion_queue<TestType> queue{device};

  auto begun = clock_type::now();
  CHECK(queue.wait(30ms, vb::on(nobody)).timed_out());
  CHECK(clock_type::now() - begun >= 30ms);

  begun = clock_type::now();
  auto waiting = std::async(std::launch::async, [&] { return queue.wait(soon, vb::on(nobody)); });
  std::this_thread::sleep_for(20ms);
  queue.stop();
  CHECK(waiting.get().stopped());
  CHECK(clock_type::now() - begun < soon / 2);
  CHECK(queue.wait(soon, vb::on(nobody)).stopped());
  queue.resume();

  struct sigaction act{};
  struct sigaction before{};
  act.sa_handler = [](int) {};  // without SA_RESTART: what sleeps returns with EINTR
  REQUIRE(::sigaction(SIGUSR1, &act, &before) == 0);
  std::promise<pthread_t> waiter;
  auto signaled = std::async(std::launch::async, [&] {
    waiter.set_value(::pthread_self());
    return queue.wait(200ms, vb::on(nobody));
  });
  const pthread_t at = waiter.get_future().get();
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(20ms);
    REQUIRE(::pthread_kill(at, SIGUSR1) == 0);
  }
  CHECK(signaled.get().timed_out());
  REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);
}

TEST_CASE("FC-04 posting again in the handler of a failure loses none of the others", "[waiting]") {
  VERBENA_DEVICE_OR_SKIP(device);
  constexpr int receives = 8;
  auto in = device.allocate<vb::sink>(64);
  auto [first, second] = links::connect<cm_link>(device);
  for (int i = 0; i < receives; ++i) REQUIRE(first.post(vb::receive(in)));
  second.close();
  int failed = 0;
  int breaking = 0;
  int thrown = 0;
  const auto handle = vb::on([&](const vb::failed& each) {
    ++failed;
    breaking += int{each.breaks_connection()};
    (void)first.post(vb::receive(in));  // throws
  });
  const auto begun = clock_type::now();
  while (failed < receives && clock_type::now() - begun < soon) {
    try {
      (void)first.peer_gone();
      (void)first.completions().poll(handle);
    } catch (const vb::failure& why) {
      CHECK(why.code() == vb::errc::broken);
      ++thrown;
    }
  }
  CHECK(failed == receives);
  CHECK(thrown == receives);
  CHECK(breaking == 1);
  CHECK_FALSE(first.completions().poll(handle));
}
