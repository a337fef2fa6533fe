// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "side.hpp"

using namespace cm_test;
using namespace std::chrono_literals;

TEST_CASE("soft cm: a connection, event by event", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side client{fabric};
  side server{fabric};
  int own = 0;
  rdma_cm_id* listener = server.id(&own);
  REQUIRE(server.bind(listener, "127.0.0.1", 0) == 0);
  CHECK(listener->verbs == server.device.native_handle());
  CHECK(std::string{listener->verbs->device->name} == fabric);
  CHECK(listener->port_num == 1);
  CHECK(listener->channel == server.channel);
  REQUIRE(server.cm.listen(listener, 1) == 0);
  const std::uint16_t port = port_of(listener->route.addr.src_addr);
  REQUIRE(port != 0);

  rdma_cm_id* active = client.id();
  REQUIRE(client.resolve(active, "127.0.0.1", port) == 0);
  CHECK(client.readable());
  const seen resolved = client.next();
  CHECK(resolved.type == RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK(resolved.id == active);
  CHECK(!client.readable());
  CHECK(active->verbs == client.device.native_handle());
  CHECK(port_of(active->route.addr.src_addr) != 0);
  REQUIRE(client.cm.resolve_route(active, 1) == 0);
  CHECK(client.next().type == RDMA_CM_EVENT_ROUTE_RESOLVED);
  CHECK(!server.readable());
  REQUIRE(client.connect(active, "question") == 0);

  CHECK(server.readable());
  const seen request = server.next();
  REQUIRE(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.listener == listener);
  CHECK(request.id != listener);
  CHECK(request.id->context == &own);
  CHECK(request.id->verbs == server.device.native_handle());
  CHECK(std::memcmp(&request.id->route.addr.dst_sin, &active->route.addr.src_sin,
                    sizeof(sockaddr_in)) == 0);
  CHECK(port_of(request.id->route.addr.src_addr) == port);
  CHECK(request.data == "question" + std::string(56 - 8, '\0'));
  CHECK(request.conn.responder_resources == 5);
  CHECK(request.conn.initiator_depth == 3);
  CHECK(request.conn.retry_count == 6);
  CHECK(request.conn.rnr_retry_count == 4);
  CHECK(request.conn.qp_num == 0x1234);

  REQUIRE(server.accept(request.id, "answer") == 0);
  const seen response = client.next();
  REQUIRE(response.type == RDMA_CM_EVENT_CONNECT_RESPONSE);
  CHECK(response.id == active);
  CHECK(response.data == "answer" + std::string(196 - 6, '\0'));
  CHECK(response.conn.responder_resources == 1);
  CHECK(response.conn.initiator_depth == 2);
  CHECK(response.conn.qp_num == 0x4321);
  CHECK(server.quiet(0ms));
  REQUIRE(client.cm.establish(active) == 0);
  CHECK(server.next().type == RDMA_CM_EVENT_ESTABLISHED);

  REQUIRE(client.cm.disconnect(active) == 0);
  CHECK(client.quiet(0ms));
  CHECK(server.next().type == RDMA_CM_EVENT_DISCONNECTED);
  CHECK(server.cm.disconnect(request.id) == 0);
  const seen gone = client.next();
  CHECK(gone.type == RDMA_CM_EVENT_DISCONNECTED);
  CHECK(gone.status == 0);
  CHECK(client.cm.disconnect(active) == 0);
  CHECK(server.cm.disconnect(request.id) == 0);
  CHECK(client.quiet());
  CHECK(server.quiet());
}

TEST_CASE("soft cm: private data has its limits", "[soft][cm]") {
  pair both;
  CHECK(both.client.connect(both.active, std::string(57, 'x')) == EINVAL);
  REQUIRE(both.client.connect(both.active, std::string(56, 'x')) == 0);
  const seen request = both.server.next();
  REQUIRE(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.data == std::string(56, 'x'));
  CHECK(both.server.reject(request.id, std::string(149, 'y')) == EINVAL);
  CHECK(both.server.accept(request.id, std::string(197, 'y')) == EINVAL);
  SECTION("accept") {
    REQUIRE(both.server.accept(request.id, std::string(196, 'y')) == 0);
    CHECK(both.client.next().data == std::string(196, 'y'));
  }
  SECTION("reject") {
    REQUIRE(both.server.reject(request.id, std::string(148, 'y')) == 0);
    CHECK(both.client.next().data == std::string(148, 'y'));
  }
}

TEST_CASE("soft cm: depths of more than the device has are refused", "[soft][cm]") {
  pair both;
  rdma_conn_param with = side::parameters();
  with.responder_resources = 17;
  CHECK(both.client.cm.connect(both.active, &with) == -1);
  with.responder_resources = RDMA_MAX_RESP_RES;
  CHECK(both.client.cm.connect(both.active, nullptr) == -1);
  REQUIRE(both.client.cm.connect(both.active, &with) == 0);
  CHECK(both.server.next().conn.initiator_depth == 16);
}

TEST_CASE("soft cm: refusals and their reasons", "[soft][cm]") {
  pair both;
  SECTION("by the program") {
    both.ask();
    REQUIRE(both.server.reject(both.passive, "no") == 0);
    const seen refused = both.client.next();
    CHECK(refused.type == RDMA_CM_EVENT_REJECTED);
    CHECK(refused.status == 28);
    CHECK(refused.data == "no" + std::string(146, '\0'));
    CHECK(both.server.reject(both.passive) == EINVAL);
    CHECK(both.server.accept(both.passive) == EINVAL);
  }
  SECTION("nobody listens") {
    rdma_cm_id* lonely = both.client.routed("127.0.0.1", 1);
    REQUIRE(both.client.connect(lonely) == 0);
    const seen refused = both.client.next();
    CHECK(refused.type == RDMA_CM_EVENT_REJECTED);
    CHECK(refused.status == 8);
    CHECK(both.client.connect(lonely) == EINVAL);
  }
  SECTION("the request's id is destroyed") {
    both.ask();
    both.server.destroy(both.passive);
    const seen refused = both.client.next();
    CHECK(refused.type == RDMA_CM_EVENT_REJECTED);
    CHECK(refused.status == 28);
  }
  SECTION("the listener is destroyed") {
    REQUIRE(both.client.connect(both.active) == 0);
    both.server.destroy(both.listener);
    CHECK(both.client.next().status == 28);
  }
  SECTION("the client gives up before the answer") {
    both.ask();
    both.client.destroy(both.active);
    CHECK(both.server.quiet());
    CHECK(both.server.accept(both.passive) == EINVAL);
    CHECK(both.server.reject(both.passive) == EINVAL);
  }
  SECTION("the client gives up before the request is seen") {
    REQUIRE(both.client.connect(both.active) == 0);
    both.client.destroy(both.active);
    const seen request = both.server.next();
    CHECK(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(both.server.accept(request.id) == EINVAL);
  }
  SECTION("the client gives up after the answer") {
    both.answer();
    both.client.destroy(both.active);
    const seen refused = both.server.next();
    CHECK(refused.type == RDMA_CM_EVENT_REJECTED);
    CHECK(refused.status == 28);
  }
  SECTION("the client rejects the answer") {
    both.answer();
    REQUIRE(both.client.reject(both.active, "changed my mind") == 0);
    const seen refused = both.server.next();
    CHECK(refused.status == 28);
    CHECK(refused.data.substr(0, 15) == "changed my mind");
  }
  SECTION("the server gives up after the answer") {
    both.answer();
    both.server.destroy(both.passive);
    CHECK(both.client.next().type == RDMA_CM_EVENT_REJECTED);
    CHECK(both.client.cm.establish(both.active) == -1);
  }
}

TEST_CASE("soft cm: a full backlog refuses", "[soft][cm]") {
  const std::string fabric = fabric_name();
  side client{fabric};
  side server{fabric};
  rdma_cm_id* listener = server.listen("127.0.0.1", 0, 2);
  const std::uint16_t port = port_of(listener->route.addr.src_addr);
  for (int i = 0; i < 2; ++i) REQUIRE(client.connect(client.routed("127.0.0.1", port)) == 0);
  CHECK(client.quiet());
  REQUIRE(client.connect(client.routed("127.0.0.1", port)) == 0);
  const seen refused = client.next();
  CHECK(refused.type == RDMA_CM_EVENT_REJECTED);
  CHECK(refused.status == 3);
  CHECK(server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
  REQUIRE(client.connect(client.routed("127.0.0.1", port)) == 0);
  CHECK(server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(server.quiet());
}

TEST_CASE("soft cm: calls out of order", "[soft][cm]") {
  pair both;
  side& client = both.client;
  rdma_cm_id* fresh = client.id();
  CHECK(client.connect(fresh) == EINVAL);
  CHECK(client.accept(fresh) == EINVAL);
  CHECK(client.reject(fresh) == EINVAL);
  CHECK(client.cm.establish(fresh) == -1);
  CHECK(client.cm.disconnect(fresh) == -1);
  CHECK(errno == EINVAL);
  CHECK(client.cm.resolve_route(fresh, 1) == -1);
  CHECK(client.resolve(both.active, "127.0.0.1", 1) == EINVAL);
  CHECK(client.cm.listen(both.active, 1) == -1);
  CHECK(both.server.bind(both.listener, "127.0.0.1", 0) == EINVAL);
  CHECK(both.server.connect(both.listener) == EINVAL);
  rdma_cm_id* made = nullptr;
  CHECK(client.cm.create_id(nullptr, &made, nullptr, RDMA_PS_TCP) == -1);
  CHECK(client.cm.create_id(client.channel, &made, nullptr, RDMA_PS_UDP) == -1);
  CHECK(errno == EPROTONOSUPPORT);
  both.establish();
  CHECK(client.connect(both.active) == EINVAL);
  CHECK(client.cm.establish(both.active) == -1);
  CHECK(both.server.accept(both.passive) == EINVAL);
}

TEST_CASE("soft cm: how connections end", "[soft][cm]") {
  pair both;
  both.establish();
  SECTION("both at once") {
    REQUIRE(both.client.cm.disconnect(both.active) == 0);
    REQUIRE(both.server.cm.disconnect(both.passive) == 0);
    CHECK(both.client.next().type == RDMA_CM_EVENT_DISCONNECTED);
    CHECK(both.server.next().type == RDMA_CM_EVENT_DISCONNECTED);
  }
  SECTION("destroyed without a word") {
    both.server.destroy(both.passive);
    CHECK(both.client.next().type == RDMA_CM_EVENT_DISCONNECTED);
    CHECK(both.client.cm.disconnect(both.active) == 0);
  }
  SECTION("disconnected and destroyed") {
    REQUIRE(both.client.cm.disconnect(both.active) == 0);
    both.client.destroy(both.active);
    CHECK(both.server.next().type == RDMA_CM_EVENT_DISCONNECTED);
  }
  SECTION("destroyed in answer") {
    REQUIRE(both.client.cm.disconnect(both.active) == 0);
    CHECK(both.server.next().type == RDMA_CM_EVENT_DISCONNECTED);
    both.server.destroy(both.passive);
    CHECK(both.client.next().type == RDMA_CM_EVENT_DISCONNECTED);
  }
  CHECK(both.client.quiet());
  CHECK(both.server.quiet());
}

TEST_CASE("soft cm: before ESTABLISHED is seen the client may have gone", "[soft][cm]") {
  pair both;
  both.answer();
  REQUIRE(both.client.cm.establish(both.active) == 0);
  both.client.destroy(both.active);
  CHECK(both.server.next().type == RDMA_CM_EVENT_ESTABLISHED);
  CHECK(both.server.next().type == RDMA_CM_EVENT_DISCONNECTED);
}

TEST_CASE("soft cm: attributes lead a queue pair to RTS", "[soft][cm]") {
  pair both;
  const auto& table = both.client.device.table();
  ibv_context* const device = both.client.device.native_handle();
  ibv_pd* const domain = table.alloc_pd(device);
  ibv_cq* const queue = table.create_cq(device, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr asked{};
  asked.send_cq = asked.recv_cq = queue;
  asked.qp_type = IBV_QPT_RC;
  asked.cap = {4, 4, 1, 1, 0};
  ibv_qp* const made = table.create_qp(domain, &asked);
  REQUIRE(made != nullptr);

  const auto move = [&](ibv_qp_state next) {
    ibv_qp_attr attributes{};
    attributes.qp_state = next;
    int mask = 0;
    REQUIRE(both.client.cm.init_qp_attr(both.active, &attributes, &mask) == 0);
    CHECK(table.modify_qp(made, &attributes, mask) == 0);
    return attributes;
  };
  ibv_qp_attr early{};
  int mask = 0;
  early.qp_state = IBV_QPS_RTR;
  CHECK(both.client.cm.init_qp_attr(both.active, &early, &mask) == -1);
  CHECK(errno == EINVAL);
  std::uint8_t ack_timeout = 9;
  CHECK(both.client.cm.set_option(both.active, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
                                  &ack_timeout, sizeof ack_timeout) == 0);
  both.answer();
  move(IBV_QPS_INIT);
  const ibv_qp_attr receive = move(IBV_QPS_RTR);
  CHECK(receive.dest_qp_num == 0x4321);
  CHECK(receive.path_mtu == IBV_MTU_4096);
  CHECK(receive.max_dest_rd_atomic == 1);
  CHECK(receive.ah_attr.is_global == 1);
  const ibv_qp_attr send = move(IBV_QPS_RTS);
  CHECK(send.max_rd_atomic == 2);
  CHECK(send.retry_cnt == 6);
  CHECK(send.rnr_retry == 4);
  CHECK(send.timeout == 9);
  early.qp_state = IBV_QPS_RTR;
  REQUIRE(both.server.cm.init_qp_attr(both.passive, &early, &mask) == 0);
  CHECK(early.rq_psn == send.sq_psn);
  CHECK(early.dest_qp_num == 0x1234);

  CHECK(table.destroy_qp(made) == 0);
  CHECK(table.destroy_cq(queue) == 0);
  CHECK(table.dealloc_pd(domain) == 0);
}

TEST_CASE("soft cm: options are taken, what is none is refused", "[soft][cm]") {
  side here{fabric_name()};
  rdma_cm_id* of = here.id();
  std::array<char, 8> value{};
  const auto set = [&](int level, int name, std::size_t length) {
    return here.cm.set_option(of, level, name, value.data(), length) == 0 ? 0 : errno;
  };
  CHECK(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1) == 0);
  CHECK(set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4) == 0);
  CHECK(set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1) == EINVAL);
  CHECK(set(RDMA_OPTION_ID, 77, 1) == ENOSYS);
  CHECK(set(RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 8) == ENOSYS);
}
