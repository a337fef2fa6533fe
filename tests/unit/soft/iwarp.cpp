// SPDX-License-Identifier: BSL-1.0
#include <arpa/inet.h>
#include <poll.h>

#include <cerrno>

#include "side.hpp"

using namespace soft_test;

namespace {

/// Ids and events of one device.
struct manager {
  explicit manager(side& of)
      : on{of}, calls{*of.calls.cm}, channel{calls.create_event_channel(of.native)} {
    REQUIRE(channel != nullptr);
  }
  ~manager() {
    for (rdma_cm_id* each : ids) calls.destroy_id(each);
    calls.destroy_event_channel(channel);
  }
  manager(const manager&) = delete;
  manager& operator=(const manager&) = delete;

  rdma_cm_id* id() {
    rdma_cm_id* made = nullptr;
    REQUIRE(calls.create_id(channel, &made, nullptr, RDMA_PS_TCP) == 0);
    ids.push_back(made);
    return made;
  }
  rdma_cm_event_type next(rdma_cm_id** whose = nullptr, std::size_t* data = nullptr) {
    pollfd look{channel->fd, POLLIN, 0};
    REQUIRE(::poll(&look, 1, 10'000) == 1);
    rdma_cm_event* event = nullptr;
    REQUIRE(calls.get_event(channel, &event) == 0);
    const rdma_cm_event_type type = event->event;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) ids.push_back(event->id);
    if (whose != nullptr) *whose = event->id;
    if (data != nullptr) *data = event->param.conn.private_data_len;
    calls.ack_event(event);
    return type;
  }

  side& on;
  const verbena::verbs::cm_table& calls;
  rdma_event_channel* channel;
  std::vector<rdma_cm_id*> ids;
};

rdma_conn_param parameters(const end& of) {
  rdma_conn_param made{};
  made.private_data = "hello";
  made.private_data_len = 5;
  made.responder_resources = 2;
  made.initiator_depth = 2;
  made.qp_num = of.pair->qp_num;
  return made;
}

ibv_qp_state state_of(const end& of) {
  ibv_qp_attr is{};
  ibv_qp_init_attr was{};
  REQUIRE(of.on.calls.query_qp(of.pair, &is, IBV_QP_STATE, &was) == 0);
  return is.qp_state;
}

}  // namespace

TEST_CASE("soft iWARP: RDMA CM connects, and the connection ends with it", "[soft][cm][knobs]") {
  const std::string fabric = fabric_name();
  side here{fabric + ",iwarp=1"};
  side there{fabric + ",iwarp=1"};
  manager active{here};
  manager passive{there};
  end one{here};
  end other{there};
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rdma_cm_id* const listener = passive.id();
  REQUIRE(passive.calls.bind_addr(listener, reinterpret_cast<sockaddr*>(&at)) == 0);
  REQUIRE(passive.calls.listen(listener, 1) == 0);
  at = *reinterpret_cast<sockaddr_in*>(&listener->route.addr.src_addr);
  rdma_cm_id* const asking = active.id();
  REQUIRE(active.calls.resolve_addr(asking, nullptr, reinterpret_cast<sockaddr*>(&at), 1000) == 0);
  REQUIRE(active.next() == RDMA_CM_EVENT_ADDR_RESOLVED);
  REQUIRE(active.calls.resolve_route(asking, 1000) == 0);
  REQUIRE(active.next() == RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_conn_param mine = parameters(one);
  REQUIRE(active.calls.connect(asking, &mine) == 0);
  rdma_cm_id* asked = nullptr;
  std::size_t data = 0;
  REQUIRE(passive.next(&asked, &data) == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(data == 5);
  rdma_conn_param its = parameters(other);
  errno = 0;
  CHECK(passive.calls.accept(asked, &its) == -1);  // its queue pair is in RESET
  CHECK(errno == EINVAL);
  REQUIRE(other.to_init() == 0);
  REQUIRE(passive.calls.accept(asked, &its) == 0);

  SECTION("where the active end's queue pair is ready") {
    REQUIRE(one.to_init() == 0);
    REQUIRE(active.next(nullptr, &data) == RDMA_CM_EVENT_ESTABLISHED);
    CHECK(data == 5);
    REQUIRE(passive.next() == RDMA_CM_EVENT_ESTABLISHED);
    CHECK(state_of(one) == IBV_QPS_RTS);
    CHECK(state_of(other) == IBV_QPS_RTS);

    const auto key = there.region->rkey;
    const auto remote = reinterpret_cast<std::uintptr_t>(there.memory);
    here.word(0) = 6;
    REQUIRE(one.rdma(IBV_WR_RDMA_WRITE, 1, here.piece(0, 8), remote, key) == 0);
    CHECK(status_of(one.sends, 1) == IBV_WC_SUCCESS);
    CHECK(there.word(0) == 6);
    CHECK(one.rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 2, here.piece(0, 8), remote, key) == EINVAL);
    CHECK(one.fetch_add(2, here.piece(0, 8), remote, key, 1) == EINVAL);
    ibv_send_wr read{};
    read.opcode = IBV_WR_RDMA_READ;
    read.wr.rdma = {remote, key};
    CHECK(one.post(read, {here.piece(0, 8), here.piece(8, 8)}) == EINVAL);
    // A read's sink is written as by a peer.
    ibv_mr* const local = here.calls.reg_mr(here.domain, here.memory, 64, IBV_ACCESS_LOCAL_WRITE);
    const ibv_sge sink{reinterpret_cast<std::uintptr_t>(here.memory), 8, local->lkey};
    REQUIRE(one.receive(7, {here.piece(0, 8)}) == 0);
    REQUIRE(other.receive(8, {there.piece(0, 8)}) == 0);

    SECTION("a goodbye fails both queue pairs") {
      REQUIRE(active.calls.disconnect(asking) == 0);
      CHECK(passive.next() == RDMA_CM_EVENT_DISCONNECTED);
      CHECK(status_of(other.receives, 8) == IBV_WC_WR_FLUSH_ERR);
      REQUIRE(passive.calls.disconnect(asked) == 0);
      CHECK(active.next() == RDMA_CM_EVENT_DISCONNECTED);
      CHECK(status_of(one.receives, 7) == IBV_WC_WR_FLUSH_ERR);
    }
    SECTION("a read into memory that peers may not write") {
      REQUIRE(one.rdma(IBV_WR_RDMA_READ, 3, sink, remote, key) == 0);
      CHECK(status_of(one.sends, 3) == IBV_WC_LOC_PROT_ERR);
    }
    here.calls.dereg_mr(local);
  }
  SECTION("where it is not") {
    CHECK(active.next() == RDMA_CM_EVENT_CONNECT_ERROR);
    CHECK(passive.next() == RDMA_CM_EVENT_UNREACHABLE);
    CHECK(state_of(other) == IBV_QPS_ERR);
  }
}

TEST_CASE("soft knobs: an iWARP device", "[soft][knobs]") {
  side here{fabric_name() + ",iwarp=1"};
  CHECK(here.device.is_iwarp());
  CHECK(here.native->device->node_type == IBV_NODE_RNIC);
  CHECK(here.device.attributes().atomic_cap == IBV_ATOMIC_NONE);
  CHECK(here.device.attributes().max_sge_rd == 1);
  CHECK(here.calls.reg_mr(here.domain, here.memory, 0, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  end one{here};
  REQUIRE(one.to_init() == 0);
  CHECK(one.to_rtr(5) == EINVAL);  // RDMA CM connects
  ibv_qp_init_attr asked{};
  asked.send_cq = asked.recv_cq = one.sends;
  asked.qp_type = IBV_QPT_UD;
  errno = 0;
  CHECK(here.calls.create_qp(here.domain, &asked) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}
