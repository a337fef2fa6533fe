// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/threading/shared.hpp>
#include <verbena/policy/threading/single_owner.hpp>

#include "catch.hpp"
#include "end_of.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"

namespace vb = verbena;

using vb::errors::returning;

namespace {

using link_type = vb::connection<returning, vb::threading::shared>;

/// Its provider does something between taking a request and returning.
struct host {
  host() {
    auto& ops = opened.native_handle()->ops;
    takes_send = std::exchange(ops.post_send, [](ibv_qp* on, ibv_send_wr* work, ibv_send_wr** bad) {
      const int value = takes_send(on, work, bad);
      meanwhile();
      return value;
    });
    takes_receive =
        std::exchange(ops.post_recv, [](ibv_qp* on, ibv_recv_wr* work, ibv_recv_wr** bad) {
          const int value = takes_receive(on, work, bad);
          meanwhile();
          return value;
        });
    meanwhile = [] {};
  }

  link_type connect() {
    auto made = vb::endpoint<returning, vb::threading::shared>::open(
        domain, {.send_depth = 4, .receive_depth = 4});
    auto peer = vb::endpoint<returning>::open(domain, {.send_depth = 1, .receive_depth = 1});
    return std::move(made).value().connect(peer.value().describe().value()).value();
  }

  fabricated::device adapter;
  vb::verbs::device opened = adapter.open();
  vb::verbs::protection_domain domain = vb::verbs::protection_domain::create(opened).value();
  fabricated::scratch memory = fabricated::memory(domain);

  static inline std::function<void()> meanwhile;
  static inline int (*takes_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  static inline int (*takes_receive)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
};

}  // namespace

TEST_CASE("FC-42 shared: a completion polled before the post has returned is not lost") {
  host on;
  auto link = on.connect();
  const auto poll = [&] {
    on.adapter.complete_all(link.native_handle(), 8);
    std::uint32_t retired = 0;
    (void)link.completions().poll(
        vb::on([&](vb::completed<vb::send> done) { retired += done.retired(); },
               [&](vb::completed<vb::receive> done) { retired += done.retired(); },
               [](const vb::failed&) { FAIL("failed"); }));
    CHECK(retired == 2);
  };
  host::meanwhile = poll;
  for (int i = 0; i < 10; ++i) {
    REQUIRE(link.post(vb::send(on.memory.first(8)), vb::send(on.memory.first(8))));
    REQUIRE(link.post(vb::receive(on.memory.first(8)), vb::receive(on.memory.first(8))));
  }
  host::meanwhile = [] {};
  CHECK(link.wait(std::chrono::nanoseconds{0}).has_value());
}

TEST_CASE("FC-42 shared: of a chain that enters in part the rest is posted again") {
  host on;
  on.adapter.send_slots = 3;
  on.adapter.receive_slots = 3;
  auto link = on.connect();
  const auto message = [&] { return vb::send(on.memory.first(8)); };
  const auto place = [&] { return vb::receive(on.memory.first(8)); };
  // Once they complete after the post has returned, once before.
  for (const bool early : {false, true}) {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    const auto poll = [&] {
      on.adapter.complete_all(link.native_handle(), 8);
      (void)link.completions().poll(
          vb::on([&](vb::completed<vb::send> done) { sent += done.retired(); },
                 [&](vb::completed<vb::receive> done) { received += done.retired(); },
                 [](const vb::failed&) { FAIL("failed"); }));
    };
    if (early) host::meanwhile = poll;
    CHECK(link.post(message(), message(), message(), message()).count() == 3);
    CHECK(link.post(place(), place(), place(), place()).count() == 3);
    host::meanwhile = [] {};
    poll();
    CHECK(link.post(message()));
    CHECK(link.post(place()));
    poll();
    CHECK(sent == 4);
    CHECK(received == 4);
    CHECK(link.wait(std::chrono::nanoseconds{0}).has_value());
  }
}

TEST_CASE("FC-42 single_owner: builds with assertions end where a lock would have been needed") {
  vb::threading::single_owner::mutex guard;
  guard.lock();
  guard.unlock();
  guard.lock();
#ifndef NDEBUG
  const auto [status, said] = end_of([&] { guard.lock(); });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(said.find("name vb::threading::shared") != std::string::npos);
#endif
  guard.unlock();
}
