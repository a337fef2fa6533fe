// SPDX-License-Identifier: BSL-1.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "side.hpp"

using namespace cm_test;
using namespace std::chrono_literals;

namespace {

/// Another process, which tells this one a word at a time how far it is, and is killed.
class child {
 public:
  using talk = std::function<void(std::uint16_t)>;

  explicit child(const std::function<void(const talk&)>& work) {
    REQUIRE(::pipe(pipe_.data()) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      work([this](std::uint16_t word) { (void)!::write(pipe_[1], &word, sizeof word); });
      for (;;) ::pause();
    }
  }
  ~child() {
    end();
    for (const int each : pipe_) ::close(each);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  std::uint16_t word() const {
    std::uint16_t said = 0;
    pollfd look{pipe_[0], POLLIN, 0};
    REQUIRE(::poll(&look, 1, 10'000) == 1);
    REQUIRE(::read(pipe_[0], &said, sizeof said) == sizeof said);
    return said;
  }
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  std::array<int, 2> pipe_{};
  pid_t process_ = 0;
};

/// How far a process gets before it is killed.
enum step : std::uint16_t { listening = 1, asked, answered, ready };

void serve(const std::string& fabric, step until, const child::talk& tell) {
  side server{fabric};
  rdma_cm_id* listener = server.listen("127.0.0.1");
  tell(port_of(listener->route.addr.src_addr));
  if (until == listening) return (void)::pause();
  const seen request = server.next();
  if (until >= answered) server.accept(request.id, "answer");
  if (until >= ready) server.next();
  tell(until);
  ::pause();
}

void ask(const std::string& fabric, std::uint16_t port, step until, const child::talk& tell) {
  side client{fabric};
  rdma_cm_id* id = client.routed("127.0.0.1", port);
  client.connect(id, "question");
  if (until == asked) {
    tell(until);
    ::pause();
  }
  if (client.next().type != RDMA_CM_EVENT_CONNECT_RESPONSE) ::_exit(1);
  if (until == ready) client.cm.establish(id);
  tell(until);
  ::pause();
}

}  // namespace

TEST_CASE("soft cm: the server's process is killed", "[soft][cm]") {
  const std::string fabric = fabric_name();
  const auto started = [&](step until) {
    return std::make_unique<child>(
        [&fabric, until](const child::talk& tell) { serve(fabric, until, tell); });
  };
  const auto expect_soon = [](side& of, rdma_cm_event_type type, int status) {
    const auto begun = std::chrono::steady_clock::now();
    const seen last = of.next();
    CHECK(last.type == type);
    CHECK(last.status == status);
    CHECK(std::chrono::steady_clock::now() - begun < 1s);
  };
  SECTION("before the request is taken") {
    const auto server = started(listening);
    side client{fabric};
    REQUIRE(client.connect(client.routed("127.0.0.1", server->word())) == 0);
    server->end();
    expect_soon(client, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
  }
  SECTION("before the answer") {
    const auto server = started(asked);
    side client{fabric};
    REQUIRE(client.connect(client.routed("127.0.0.1", server->word())) == 0);
    REQUIRE(server->word() == asked);
    server->end();
    expect_soon(client, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
  }
  SECTION("after the answer") {
    const auto server = started(answered);
    side client{fabric};
    rdma_cm_id* id = client.routed("127.0.0.1", server->word());
    REQUIRE(client.connect(id) == 0);
    CHECK(client.next().type == RDMA_CM_EVENT_CONNECT_RESPONSE);
    REQUIRE(server->word() == answered);
    server->end();
    SECTION("seen") {
      expect_soon(client, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
      CHECK(client.cm.establish(id) == -1);
    }
    SECTION("not yet") {
      REQUIRE(client.cm.establish(id) == 0);
      expect_soon(client, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
  }
  SECTION("with an answer that nobody has taken") {
    const auto server = started(answered);
    side client{fabric};
    REQUIRE(client.connect(client.routed("127.0.0.1", server->word())) == 0);
    REQUIRE(server->word() == answered);
    server->end();
    CHECK(client.next().type == RDMA_CM_EVENT_CONNECT_RESPONSE);
    expect_soon(client, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
  }
  SECTION("once connected") {
    const auto server = started(ready);
    side client{fabric};
    const std::uint16_t port = server->word();
    rdma_cm_id* id = client.routed("127.0.0.1", port);
    REQUIRE(client.connect(id) == 0);
    CHECK(client.next().type == RDMA_CM_EVENT_CONNECT_RESPONSE);
    REQUIRE(client.cm.establish(id) == 0);
    REQUIRE(server->word() == ready);
    CHECK(!client.readable());
    server->end();
    CHECK(client.readable(1s));
    expect_soon(client, RDMA_CM_EVENT_DISCONNECTED, 0);
    CHECK(client.quiet());
    // Its port is free, and nobody is there.
    REQUIRE(client.connect(client.routed("127.0.0.1", port)) == 0);
    CHECK(client.next().status == 8);
    CHECK(client.bind(client.id(), "127.0.0.1", port) == 0);
  }
}

TEST_CASE("soft cm: the client's process is killed", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side server{fabric};
  rdma_cm_id* listener = server.listen("127.0.0.1");
  const std::uint16_t port = port_of(listener->route.addr.src_addr);
  const step until = GENERATE(asked, answered, ready);
  child client{[&](const child::talk& tell) { ask(fabric, port, until, tell); }};
  const seen request = server.next();
  REQUIRE(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.data.substr(0, 8) == "question");
  if (until >= answered) REQUIRE(server.accept(request.id) == 0);
  REQUIRE(client.word() == until);
  if (until == ready) CHECK(server.next().type == RDMA_CM_EVENT_ESTABLISHED);
  client.end();
  if (until == asked) {
    // As under the kernel's CM there is no event before the request has been answered.
    CHECK(server.accept(request.id) == EINVAL);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    int mask = 0;
    CHECK(server.cm.init_qp_attr(request.id, &attributes, &mask) == -1);
  } else {
    const seen last = server.next();
    CHECK(last.type == (until == ready ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_UNREACHABLE));
    CHECK(last.status == (until == ready ? 0 : -ECONNRESET));
  }
  CHECK(server.quiet());
}

TEST_CASE("soft cm: processes killed at any time leave a listener that works", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side server{fabric};
  rdma_cm_id* listener = server.listen("127.0.0.1", 0, 64);
  const std::uint16_t port = port_of(listener->route.addr.src_addr);
  std::mt19937 random{99};
  for (int round = 0; round < 20; ++round) {
    child client{[&](const child::talk& tell) {
      side mine{fabric};
      tell(1);
      for (;;) {
        rdma_cm_id* id = mine.routed("127.0.0.1", port);
        if (id == nullptr || mine.connect(id) != 0) ::_exit(1);
        if (mine.next().type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
          mine.cm.establish(id);
          if (random() % 2 == 0) mine.cm.disconnect(id);
        }
        mine.destroy(id);
      }
    }};
    (void)client.word();
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds{random() % 20'000};
    const auto work = [&](std::chrono::milliseconds within) {
      const auto event = server.take(within);
      if (!event) return false;
      if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        if (server.accept(event->id) != 0) server.destroy(event->id);
      } else if (event->type != RDMA_CM_EVENT_ESTABLISHED) {
        server.destroy(event->id);
      }
      return true;
    };
    while (std::chrono::steady_clock::now() < until) work(1ms);
    client.end();
    while (work(20ms)) {
    }
    REQUIRE(server.ids.size() == 1);
  }
  side client{fabric};
  REQUIRE(client.connect(client.routed("127.0.0.1", port)) == 0);
  CHECK(server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
}
