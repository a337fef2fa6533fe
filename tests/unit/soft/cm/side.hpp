// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <verbena/soft/soft_device.hpp>
#include <verbena/verbs/device_list.hpp>

#include "../../../catch.hpp"

namespace cm_test {

using verbena::soft::context;

/// A fabric of this process's own. Processes that a test forks are given its name.
inline std::string fabric_name() {
  static int count = 0;
  return "soft:cm-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

inline sockaddr_storage at(const char* host, std::uint16_t port) {
  sockaddr_storage made{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(made);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(made);
  if (::inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
  } else {
    made = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    ::inet_pton(AF_INET6, host, &v6.sin6_addr);
  }
  return made;
}

inline std::uint16_t port_of(const sockaddr& from) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(from).sin_port);
}

/// An event, copied and acknowledged.
struct seen {
  rdma_cm_event_type type{};
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listener = nullptr;
  rdma_conn_param conn{};
  std::string data;
};

/// A device on a fabric with an event channel, called as a program calls librdmacm.
struct side {
  explicit side(const std::string& fabric)
      : device{verbena::verbs::open(fabric).value()},
        cm{*device.table().cm},
        channel{cm.create_event_channel(device.native_handle())} {
    ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  }
  ~side() {
    for (rdma_cm_id* each : ids) cm.destroy_id(each);
    cm.destroy_event_channel(channel);
  }
  side(const side&) = delete;
  side& operator=(const side&) = delete;

  verbena::soft::knobs& knobs() { return context::of(device.native_handle()).knobs; }

  rdma_cm_id* id(void* own = nullptr) {
    rdma_cm_id* made = nullptr;
    if (cm.create_id(channel, &made, own, RDMA_PS_TCP) != 0) return nullptr;
    ids.push_back(made);
    return made;
  }
  void destroy(rdma_cm_id* which) {
    std::erase(ids, which);
    cm.destroy_id(which);
  }

  int bind(rdma_cm_id* which, const char* host, std::uint16_t port) {
    sockaddr_storage to = at(host, port);
    return cm.bind_addr(which, reinterpret_cast<sockaddr*>(&to)) == 0 ? 0 : errno;
  }
  rdma_cm_id* listen(const char* host, std::uint16_t port = 0, int backlog = 16) {
    rdma_cm_id* made = id();
    if (bind(made, host, port) != 0 || cm.listen(made, backlog) != 0) return nullptr;
    return made;
  }
  int resolve(rdma_cm_id* which, const char* host, std::uint16_t port) {
    sockaddr_storage to = at(host, port);
    return cm.resolve_addr(which, nullptr, reinterpret_cast<sockaddr*>(&to), 1000) == 0 ? 0 : errno;
  }
  /// An id that may connect.
  rdma_cm_id* routed(const char* host, std::uint16_t port) {
    rdma_cm_id* made = id();
    if (resolve(made, host, port) != 0 || next().type != RDMA_CM_EVENT_ADDR_RESOLVED)
      return nullptr;
    if (cm.resolve_route(made, 1000) != 0 || next().type != RDMA_CM_EVENT_ROUTE_RESOLVED)
      return nullptr;
    return made;
  }

  static rdma_conn_param parameters(const std::string& data = {}) {
    rdma_conn_param made{};
    made.private_data = data.data();
    made.private_data_len = static_cast<std::uint8_t>(data.size());
    made.responder_resources = 3;
    made.initiator_depth = 5;
    made.retry_count = 6;
    made.rnr_retry_count = 4;
    made.qp_num = 0x1234;
    return made;
  }
  int connect(rdma_cm_id* which, const std::string& data = {}) {
    rdma_conn_param with = parameters(data);
    return cm.connect(which, &with) == 0 ? 0 : errno;
  }
  int accept(rdma_cm_id* which, const std::string& data = {}) {
    rdma_conn_param with = parameters(data);
    with.responder_resources = 2;
    with.initiator_depth = 1;
    with.qp_num = 0x4321;
    return cm.accept(which, &with) == 0 ? 0 : errno;
  }
  int reject(rdma_cm_id* which, const std::string& data = {}) {
    return cm.reject(which, data.data(), static_cast<std::uint8_t>(data.size())) == 0 ? 0 : errno;
  }

  bool readable(std::chrono::milliseconds within = {}) const {
    pollfd look{channel->fd, POLLIN, 0};
    return ::poll(&look, 1, static_cast<int>(within.count())) == 1;
  }

  /// The next event; none when there is none in time.
  std::optional<seen> take(std::chrono::milliseconds within = std::chrono::seconds{10}) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    for (;;) {
      rdma_cm_event* got = nullptr;
      if (cm.get_event(channel, &got) == 0) {
        seen made{got->event, got->status, got->id, got->listen_id, got->param.conn, {}};
        if (got->param.conn.private_data != nullptr)
          made.data.assign(static_cast<const char*>(got->param.conn.private_data),
                           got->param.conn.private_data_len);
        if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST) ids.push_back(got->id);
        cm.ack_event(got);
        return made;
      }
      if (errno != EAGAIN) return std::nullopt;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return std::nullopt;
      (void)readable(left);
    }
  }
  /// RDMA_CM_EVENT_MULTICAST_ERROR, which never comes, stands for none.
  seen next(std::chrono::milliseconds within = std::chrono::seconds{10}) {
    return take(within).value_or(seen{RDMA_CM_EVENT_MULTICAST_ERROR, 0, nullptr, nullptr, {}, {}});
  }
  bool quiet(std::chrono::milliseconds within = std::chrono::milliseconds{30}) {
    return !take(within).has_value();
  }

  verbena::verbs::device device;
  const verbena::verbs::cm_table& cm;
  rdma_event_channel* channel;
  std::vector<rdma_cm_id*> ids;
};

/// Two ends of a connection with the listener, on one fabric.
struct pair {
  explicit pair(const std::string& fabric = fabric_name()) : client{fabric}, server{fabric} {
    listener = server.listen("127.0.0.1");
    active = client.routed("127.0.0.1", port());
  }
  std::uint16_t port() const { return port_of(listener->route.addr.src_addr); }

  /// As far as the request.
  void ask() {
    REQUIRE(client.connect(active, "question") == 0);
    const seen request = server.next();
    REQUIRE(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
    passive = request.id;
  }
  void answer() {
    ask();
    REQUIRE(server.accept(passive, "answer") == 0);
    REQUIRE(client.next().type == RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
  void establish() {
    answer();
    REQUIRE(client.cm.establish(active) == 0);
    REQUIRE(server.next().type == RDMA_CM_EVENT_ESTABLISHED);
  }

  side client;
  side server;
  rdma_cm_id* listener = nullptr;
  rdma_cm_id* active = nullptr;
  rdma_cm_id* passive = nullptr;
};

}  // namespace cm_test
