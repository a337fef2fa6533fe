// SPDX-License-Identifier: BSL-1.0
#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "side.hpp"

using namespace cm_test;
using namespace std::chrono_literals;

TEST_CASE("soft cm: an id is not destroyed before its events are acknowledged", "[soft][cm]") {
  side here{fabric_name()};
  rdma_cm_id* id = nullptr;
  REQUIRE(here.cm.create_id(here.channel, &id, nullptr, RDMA_PS_TCP) == 0);
  REQUIRE(here.resolve(id, "127.0.0.1", 1) == 0);
  rdma_cm_event* got = nullptr;
  REQUIRE(here.cm.get_event(here.channel, &got) == 0);
  std::atomic<bool> destroyed{false};
  std::thread other{[&] {
    here.cm.destroy_id(id);
    destroyed = true;
  }};
  std::this_thread::sleep_for(50ms);
  CHECK(!destroyed);
  here.cm.ack_event(got);
  other.join();
  CHECK(destroyed);
  CHECK(here.cm.ack_event(nullptr) == -1);
}

TEST_CASE("soft cm: a destroyed id has no events any more", "[soft][cm]") {
  pair both;
  rdma_cm_id* id = both.client.id();
  REQUIRE(both.client.resolve(id, "127.0.0.1", 1) == 0);
  both.client.destroy(id);
  CHECK(!both.client.readable());
  CHECK(both.client.quiet());
}

TEST_CASE("soft cm: events move with their id", "[soft][cm]") {
  pair both;
  both.answer();
  both.client.destroy(both.active);
  CHECK(both.server.readable(1s));
  const auto& cm = both.server.cm;
  rdma_event_channel* own = cm.create_event_channel(both.server.device.native_handle());
  REQUIRE(cm.migrate_id(both.passive, own) == 0);
  CHECK(both.passive->channel == own);
  CHECK(!both.server.readable());
  rdma_cm_event* got = nullptr;
  REQUIRE(cm.get_event(own, &got) == 0);
  CHECK(got->event == RDMA_CM_EVENT_REJECTED);
  cm.ack_event(got);
  // A listener takes along who has asked.
  rdma_cm_id* again = both.client.routed("127.0.0.1", both.port());
  REQUIRE(both.client.connect(again) == 0);
  REQUIRE(cm.migrate_id(both.listener, own) == 0);
  REQUIRE(cm.get_event(own, &got) == 0);
  CHECK(got->event == RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* late = got->id;
  cm.ack_event(got);
  cm.destroy_id(late);
  // Not to another device's.
  side elsewhere{fabric_name()};
  CHECK(cm.migrate_id(both.listener, elsewhere.channel) == -1);
  CHECK(errno == EINVAL);
  both.server.destroy(both.passive);
  both.server.destroy(both.listener);
  cm.destroy_event_channel(own);
}

TEST_CASE("soft cm: the descriptor wakes epoll, and get_event blocks without O_NONBLOCK",
          "[soft][cm]") {
  pair both;
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  REQUIRE(::epoll_ctl(set, EPOLL_CTL_ADD, both.server.channel->fd, &wanted) == 0);
  CHECK(::epoll_wait(set, &wanted, 1, 0) == 0);
  auto asked = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(30ms);
    return both.client.connect(both.active);
  });
  CHECK(::epoll_wait(set, &wanted, 1, 10'000) == 1);
  CHECK(asked.get() == 0);
  CHECK(both.server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
  ::close(set);

  ::fcntl(both.client.channel->fd, F_SETFL, 0);
  auto resolved = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(30ms);
    return both.client.resolve(both.client.id(), "127.0.0.1", 1);
  });
  rdma_cm_event* got = nullptr;
  REQUIRE(both.client.cm.get_event(both.client.channel, &got) == 0);
  CHECK(got->event == RDMA_CM_EVENT_ADDR_RESOLVED);
  both.client.cm.ack_event(got);
  CHECK(resolved.get() == 0);
  ::fcntl(both.client.channel->fd, F_SETFL, O_NONBLOCK);
}

TEST_CASE("soft cm: two threads connect, again and again", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side client{fabric};
  side server{fabric};
  rdma_cm_id* listener = server.listen("127.0.0.1");
  const std::uint16_t port = port_of(listener->route.addr.src_addr);
  constexpr int rounds = 50;
  auto serving = std::async(std::launch::async, [&] {
    int ended = 0;
    while (ended < rounds) {
      const auto event = server.take();
      if (!event) break;
      if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) server.accept(event->id, "yes");
      if (event->type != RDMA_CM_EVENT_DISCONNECTED) continue;
      server.cm.disconnect(event->id);
      server.destroy(event->id);
      ++ended;
    }
    return ended;
  });
  int connected = 0;
  for (int i = 0; i < rounds; ++i) {
    rdma_cm_id* id = client.routed("127.0.0.1", port);
    if (client.connect(id) == 0 && client.next().type == RDMA_CM_EVENT_CONNECT_RESPONSE &&
        client.cm.establish(id) == 0 && client.cm.disconnect(id) == 0 &&
        client.next().type == RDMA_CM_EVENT_DISCONNECTED)
      ++connected;
    client.destroy(id);
  }
  CHECK(connected == rounds);
  CHECK(serving.get() == rounds);
}

TEST_CASE("soft cm: a burst of clients waits in the backlog", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side client{fabric};
  side server{fabric};
  rdma_cm_id* listener = server.listen("127.0.0.1", 0, 64);
  const std::uint16_t port = port_of(listener->route.addr.src_addr);
  for (int i = 0; i < 64; ++i) REQUIRE(client.connect(client.routed("127.0.0.1", port)) == 0);
  for (int i = 0; i < 64; ++i) {
    const seen request = server.next();
    REQUIRE(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
    REQUIRE(server.accept(request.id) == 0);
  }
  for (int i = 0; i < 64; ++i) {
    const seen response = client.next();
    REQUIRE(response.type == RDMA_CM_EVENT_CONNECT_RESPONSE);
    REQUIRE(client.cm.establish(response.id) == 0);
  }
  for (int i = 0; i < 64; ++i) CHECK(server.next().type == RDMA_CM_EVENT_ESTABLISHED);
}
