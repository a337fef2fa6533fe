// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <string>

#include "side.hpp"

using namespace cm_test;
using namespace std::chrono_literals;

namespace {

/// Whether a client gets from `host` to a listener.
bool leads(side& client, side& server, const char* host, std::uint16_t port) {
  rdma_cm_id* id = client.routed(host, port);
  if (id == nullptr || client.connect(id) != 0) return false;
  const auto asked = server.take(200ms);
  if (asked && asked->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    server.destroy(asked->id);
    return client.next().status == 28;
  }
  CHECK(client.next().status == 8);
  return false;
}

}  // namespace

TEST_CASE("soft cm: listeners get what comes to their address", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side client{fabric};
  side server{fabric};
  const auto listen = [&](const char* host) {
    rdma_cm_id* made = server.listen(host);
    REQUIRE(made != nullptr);
    return port_of(made->route.addr.src_addr);
  };
  SECTION("one address") {
    const std::uint16_t port = listen("127.0.0.1");
    CHECK(leads(client, server, "127.0.0.1", port));
    CHECK(leads(client, server, "0.0.0.0", port));
    CHECK(!leads(client, server, "127.0.0.2", port));
    CHECK(!leads(client, server, "::1", port));
  }
  SECTION("every IPv4 address") {
    const std::uint16_t port = listen("0.0.0.0");
    CHECK(leads(client, server, "127.0.0.1", port));
    CHECK(leads(client, server, "127.0.0.2", port));
    CHECK(!leads(client, server, "::1", port));
  }
  SECTION("IPv6") {
    const std::uint16_t port = listen("::1");
    CHECK(leads(client, server, "::1", port));
    CHECK(!leads(client, server, "127.0.0.1", port));
  }
  SECTION("every address") {
    const std::uint16_t port = listen("::");
    CHECK(leads(client, server, "::1", port));
    CHECK(leads(client, server, "127.0.0.1", port));
  }
  SECTION("every IPv6 address") {
    rdma_cm_id* made = server.id();
    int on = 1;
    REQUIRE(server.cm.set_option(made, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on) == 0);
    REQUIRE(server.bind(made, "::", 0) == 0);
    CHECK(made->verbs == nullptr);
    REQUIRE(server.cm.listen(made, 4) == 0);
    const std::uint16_t port = port_of(made->route.addr.src_addr);
    CHECK(leads(client, server, "::1", port));
    CHECK(!leads(client, server, "127.0.0.1", port));
  }
  SECTION("without binding") {
    rdma_cm_id* made = server.id();
    REQUIRE(server.cm.listen(made, 4) == 0);
    CHECK(leads(client, server, "127.0.0.1", port_of(made->route.addr.src_addr)));
  }
}

TEST_CASE("soft cm: every address of the host can be bound to and resolved", "[soft][cm]") {
  side here{fabric_name()};
  for (const std::uint16_t family : {std::uint16_t{AF_INET}, std::uint16_t{AF_INET6}}) {
    for (const auto& each : verbena::soft::cm::host_addresses(family, 0)) {
      sockaddr_storage address = each.native();
      auto* const native = reinterpret_cast<sockaddr*>(&address);
      CHECK(here.cm.bind_addr(here.id(), native) == 0);
      CHECK(here.cm.resolve_addr(here.id(), nullptr, native, 1) == 0);
      CHECK(here.next().type == RDMA_CM_EVENT_ADDR_RESOLVED);
    }
  }
}

TEST_CASE("soft cm: addresses of others", "[soft][cm]") {
  side here{fabric_name()};
  CHECK(here.bind(here.id(), "203.0.113.1", 0) == EADDRNOTAVAIL);
  CHECK(here.bind(here.id(), "224.0.0.1", 0) == EADDRNOTAVAIL);
  CHECK(here.bind(here.id(), "ff02::1", 0) == EADDRNOTAVAIL);
  sockaddr neither{};
  neither.sa_family = AF_UNIX;
  CHECK(here.cm.bind_addr(here.id(), &neither) == -1);
  CHECK(errno == EAFNOSUPPORT);
  rdma_cm_id* id = here.id();
  REQUIRE(here.resolve(id, "203.0.113.1", 7) == 0);
  const seen failed = here.next();
  CHECK(failed.type == RDMA_CM_EVENT_ADDR_ERROR);
  CHECK(failed.status == -ENETUNREACH);
  CHECK(failed.id == id);
  REQUIRE(here.resolve(id, "127.0.0.1", 7) == 0);
  CHECK(here.next().type == RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_CASE("soft cm: one port, one user", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side first{fabric};
  side second{fabric};
  const auto taken = [&](const char* by, const char* host) {
    rdma_cm_id* held = first.listen(by);
    REQUIRE(held != nullptr);
    rdma_cm_id* tried = second.id();
    const int number = second.bind(tried, host, port_of(held->route.addr.src_addr));
    second.destroy(tried);
    first.destroy(held);
    return number;
  };
  CHECK(taken("127.0.0.1", "127.0.0.1") == EADDRINUSE);
  CHECK(taken("0.0.0.0", "127.0.0.1") == EADDRINUSE);
  CHECK(taken("127.0.0.1", "0.0.0.0") == EADDRINUSE);
  CHECK(taken("::1", "::") == EADDRINUSE);
  CHECK(taken("127.0.0.1", "127.0.0.2") == 0);
  CHECK(taken("0.0.0.0", "::1") == 0);
  // Given back at once.
  rdma_cm_id* held = first.listen("127.0.0.1");
  const std::uint16_t port = port_of(held->route.addr.src_addr);
  first.destroy(held);
  CHECK(second.bind(second.id(), "127.0.0.1", port) == 0);
}

TEST_CASE("soft cm: a client may choose its address and port", "[soft][cm]") {
  pair both;
  sockaddr_storage from = at("127.0.0.3", 0);
  sockaddr_storage to = at("127.0.0.1", both.port());
  rdma_cm_id* id = both.client.id();
  REQUIRE(both.client.cm.resolve_addr(id, reinterpret_cast<sockaddr*>(&from),
                                      reinterpret_cast<sockaddr*>(&to), 1) == 0);
  REQUIRE(both.client.next().type == RDMA_CM_EVENT_ADDR_RESOLVED);
  REQUIRE(both.client.cm.resolve_route(id, 1) == 0);
  REQUIRE(both.client.next().type == RDMA_CM_EVENT_ROUTE_RESOLVED);
  REQUIRE(both.client.connect(id) == 0);
  const seen request = both.server.next();
  CHECK(std::memcmp(&request.id->route.addr.dst_sin, &id->route.addr.src_sin,
                    sizeof(sockaddr_in)) == 0);
  CHECK(ntohl(id->route.addr.src_sin.sin_addr.s_addr) == 0x7f00'0003);
}

TEST_CASE("soft cm: fabrics do not see each other", "[soft][cm]") {
  pair one;
  side client{fabric_name()};
  side server{fabric_name()};
  CHECK(server.bind(server.id(), "127.0.0.1", one.port()) == 0);
  REQUIRE(client.connect(client.routed("127.0.0.1", one.port())) == 0);
  CHECK(client.next().status == 8);
  CHECK(one.server.quiet());
  CHECK(one.active->verbs->device->name != std::string{server.device.name()});
}
