// SPDX-License-Identifier: BSL-1.0
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "side.hpp"

using namespace cm_test;
using namespace std::chrono_literals;
using verbena::soft::cm::location;
using verbena::soft::cm::message;
using verbena::soft::cm::socket_name;

namespace {

std::string path(const side& of) { return context::of(of.device.native_handle()).fabric->path(); }

socket_name name_of(const side& of, std::uint16_t port) {
  return {path(of), location::loopback(AF_INET, port)};
}

/// A socket that has connected to a listener as no CM does.
int stranger(const side& of, std::uint16_t port) {
  const int made = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const socket_name name = name_of(of, port);
  REQUIRE(::connect(made, name.address(), name.length) == 0);
  return made;
}

message request(const side& from) {
  message made;
  made.what = message::request;
  made.process = context::of(from.device.native_handle()).fabric->me();
  made.mtu = 3;
  made.from = location::loopback(AF_INET, 1);
  made.to = location::loopback(AF_INET, 2);
  return made;
}

}  // namespace

TEST_CASE("soft cm: a request is checked word for word", "[soft][cm]") {
  const message right = [] {
    message made;
    made.what = message::request;
    made.mtu = 5;
    made.from = made.to = location::loopback(AF_INET, 1);
    return made;
  }();
  CHECK(right.check(sizeof right));
  CHECK(!right.check(sizeof right - 1));
  CHECK(!right.check(sizeof right + 1));
  const auto wrong = [&](auto change) {
    message changed = right;
    change(changed);
    return !changed.check(sizeof changed);
  };
  CHECK(wrong([](message& m) { m.magic = 1; }));
  CHECK(wrong([](message& m) { m.version = 2; }));
  CHECK(wrong([](message& m) { m.what = 0; }));
  CHECK(wrong([](message& m) { m.what = 6; }));
  CHECK(wrong([](message& m) { m.length = 57; }));
  CHECK(wrong([](message& m) { m.what = message::response, m.length = 197; }));
  CHECK(wrong([](message& m) { m.what = message::refusal, m.length = 149; }));
  CHECK(wrong([](message& m) { m.what = message::ready, m.length = 1; }));
  CHECK(wrong([](message& m) { m.what = message::refusal, m.why = 256; }));
  CHECK(wrong([](message& m) { m.queue_pair = 1U << 24; }));
  CHECK(wrong([](message& m) { m.sequence = 1U << 24; }));
  CHECK(wrong([](message& m) { m.mtu = 0; }));
  CHECK(wrong([](message& m) { m.mtu = 6; }));
  CHECK(wrong([](message& m) { m.retry_count = 8; }));
  CHECK(wrong([](message& m) { m.rnr_retry_count = 8; }));
  CHECK(wrong([](message& m) { m.from.family = AF_UNIX; }));
  CHECK(wrong([](message& m) { m.to.family = AF_INET6; }));
}

TEST_CASE("soft cm: strangers at a listener", "[soft][cm]") {
  pair both;
  std::vector<int> strangers;
  const auto say = [&](const void* bytes, std::size_t size) {
    strangers.push_back(stranger(both.server, both.port()));
    (void)::send(strangers.back(), bytes, size, MSG_NOSIGNAL);
  };
  std::vector<char> garbage(100'000, 'x');
  say(garbage.data(), 0);
  say(garbage.data(), 1);
  say(garbage.data(), sizeof(message));
  say(garbage.data(), garbage.size());
  message premature = request(both.client);
  premature.what = message::ready;
  say(&premature, sizeof premature);
  message elsewhere = request(both.client);
  elsewhere.process = 0x7777'7705;
  say(&elsewhere, sizeof elsewhere);
  strangers.push_back(stranger(both.server, both.port()));  // says nothing
  strangers.push_back(stranger(both.server, both.port()));
  ::close(strangers.back());
  strangers.pop_back();
  CHECK(both.server.quiet());

  message answer;
  REQUIRE(::recv(strangers[5], &answer, sizeof answer, 0) == sizeof answer);
  CHECK(answer.what == message::refusal);
  CHECK(answer.why == verbena::soft::cm::not_this_fabric);
  both.establish();
  for (const int each : strangers) ::close(each);
  CHECK(both.server.quiet());
}

TEST_CASE("soft cm: a peer that talks nonsense later", "[soft][cm]") {
  pair both;
  const int peer = stranger(both.server, both.port());
  message said = request(both.client);
  REQUIRE(::send(peer, &said, sizeof said, 0) == sizeof said);
  const seen asked = both.server.next();
  REQUIRE(asked.type == RDMA_CM_EVENT_CONNECT_REQUEST);
  SECTION("a second request") {
    REQUIRE(::send(peer, &said, sizeof said, 0) == sizeof said);
    CHECK(both.server.quiet());
    CHECK(both.server.accept(asked.id) == EINVAL);
  }
  SECTION("instead of being ready") {
    REQUIRE(both.server.accept(asked.id) == 0);
    REQUIRE(::send(peer, &said, sizeof said, 0) == sizeof said);
    const seen failed = both.server.next();
    CHECK(failed.type == RDMA_CM_EVENT_CONNECT_ERROR);
    CHECK(failed.status == -EPROTO);
  }
  SECTION("once connected") {
    REQUIRE(both.server.accept(asked.id) == 0);
    said.what = message::ready;
    REQUIRE(::send(peer, &said, sizeof said, 0) == sizeof said);
    CHECK(both.server.next().type == RDMA_CM_EVENT_ESTABLISHED);
    REQUIRE(::send(peer, "what", 4, 0) == 4);
    const seen gone = both.server.next();
    CHECK(gone.type == RDMA_CM_EVENT_DISCONNECTED);
    CHECK(gone.status == -EPROTO);
  }
  ::close(peer);
  CHECK(both.server.quiet());
}

TEST_CASE("soft cm: any bytes, any order", "[soft][cm]") {
  pair both;
  std::mt19937 random{4711};
  for (int round = 0; round < 300; ++round) {
    const int peer = stranger(both.server, both.port());
    for (int count = 0; count < 4; ++count) {
      message said = request(both.client);
      said.what = static_cast<std::uint16_t>(count == 0 ? 1 : random() % 7);
      if (random() % 4 == 0) {
        auto* const bytes = reinterpret_cast<unsigned char*>(&said);
        bytes[random() % sizeof said] = static_cast<unsigned char>(random());
      }
      (void)::send(peer, &said, sizeof said - (random() % 16 == 0 ? 1 : 0), MSG_NOSIGNAL);
    }
    while (const auto event = both.server.take(0ms)) {
      if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST && random() % 2 == 0)
        both.server.accept(event->id);
      if (random() % 4 == 0 && event->id != both.listener) both.server.destroy(event->id);
    }
    ::close(peer);
  }
  while (both.server.take(0ms)) {
  }
  both.establish();
}

TEST_CASE("soft cm: a listener of another kind", "[soft][cm]") {
  side client{fabric_name()};
  const int other = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const socket_name name = name_of(client, 7);
  REQUIRE(::bind(other, name.address(), name.length) == 0);
  REQUIRE(::listen(other, 4) == 0);
  REQUIRE(client.connect(client.routed("127.0.0.1", 7)) == 0);
  const int peer = ::accept(other, nullptr, nullptr);
  message said;
  SECTION("nonsense") { REQUIRE(::send(peer, "nonsense", 8, 0) == 8); }
  SECTION("what comes later") {
    said.what = message::ready;
    REQUIRE(::send(peer, &said, sizeof said, 0) == sizeof said);
  }
  const seen failed = client.next();
  CHECK(failed.type == RDMA_CM_EVENT_CONNECT_ERROR);
  CHECK(failed.status == -EPROTO);
  ::close(peer);
  ::close(other);
}

TEST_CASE("soft cm: another user is not listened to", "[soft][cm]") {
  if (::getuid() != 0) return;  // only root can become another user
  pair both;
  const socket_name name = name_of(both.server, both.port());
  const message said = request(both.client);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const int made = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::connect(made, name.address(), name.length) != 0) ::_exit(2);
    (void)::send(made, &said, sizeof said, MSG_NOSIGNAL);
    message answer;
    errno = 0;
    const ssize_t size = ::recv(made, &answer, sizeof answer, 0);
    ::_exit(size == 0 || (size < 0 && errno == ECONNRESET) ? 0 : 3);
  }
  CHECK(both.server.quiet(200ms));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
