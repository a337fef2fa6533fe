// SPDX-License-Identifier: BSL-1.0
#include <utility>
#include <vector>

#include "fixture/linked.hpp"

using namespace raw;

/// Leaves the test where the states are not the program's to choose, with what the device says.
#define VERBENA_STATES_OR_SKIP(on)                                                  \
  if ((on).iwarp) {                                                                 \
    end probe{on};                                                                  \
    probe.to_init();                                                                \
    (void)probe.modify(probe.rtr_attributes(1), probe.full_rtr_mask());             \
    const int said = probe.modify(probe.rts_attributes(), probe.full_rts_mask());   \
    CHECK(said != 0);                                                               \
    VERBENA_SKIP(reason((on).name + ": INIT to RTR to RTS without RDMA CM", said)); \
  }

namespace {

struct named_bit {
  int bit;
  const char* name;
};
constexpr named_bit bits[]{{IBV_QP_PKEY_INDEX, "pkey_index"},
                           {IBV_QP_PORT, "port"},
                           {IBV_QP_ACCESS_FLAGS, "access"},
                           {IBV_QP_QKEY, "qkey"},
                           {IBV_QP_AV, "address"},
                           {IBV_QP_PATH_MTU, "path_mtu"},
                           {IBV_QP_DEST_QPN, "dest_qp_num"},
                           {IBV_QP_RQ_PSN, "rq_psn"},
                           {IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic"},
                           {IBV_QP_MIN_RNR_TIMER, "min_rnr_timer"},
                           {IBV_QP_SQ_PSN, "sq_psn"},
                           {IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic"},
                           {IBV_QP_RETRY_CNT, "retry_cnt"},
                           {IBV_QP_RNR_RETRY, "rnr_retry"},
                           {IBV_QP_TIMEOUT, "timeout"}};

/// Every attribute of `mask` is needed, none beyond it may be given.
void needs_exactly(end& of, const ibv_qp_attr& with, int mask, int forbidden) {
  const ibv_qp_state before = of.state();
  for (const named_bit& each : bits) {
    INFO(each.name);
    if ((mask & each.bit) != 0) {
      CHECK(of.modify(with, mask & ~each.bit) == EINVAL);
      CHECK(of.state() == before);
    }
    if ((forbidden & each.bit) != 0) {
      CHECK(of.modify(with, mask | each.bit) == EINVAL);
      CHECK(of.state() == before);
    }
  }
  CHECK(of.modify(with, mask) == 0);
  CHECK(of.state() == with.qp_state);
}

void refuse(end& of, std::initializer_list<ibv_qp_state> illegal) {
  const ibv_qp_state before = of.state();
  for (const ibv_qp_state to : illegal) {
    INFO("from " << before << " to " << to);
    ibv_qp_attr with = of.init_attributes();
    int mask = of.full_init_mask();
    if (to == IBV_QPS_RTR) {
      with = of.rtr_attributes(of.number());
      mask = of.full_rtr_mask();
    } else if (to == IBV_QPS_RTS) {
      with = of.rts_attributes();
      mask = of.full_rts_mask();
    } else if (to != IBV_QPS_INIT) {
      mask = IBV_QP_STATE;
    }
    with.qp_state = to;
    CHECK(of.modify(with, mask) == EINVAL);
    CHECK(of.state() == before);
  }
}

}  // namespace

TEST_CASE("states: attributes that each transition of an RC queue pair needs", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  end one{on};
  CHECK(one.state() == IBV_QPS_RESET);
  needs_exactly(one, one.init_attributes(), one.full_init_mask(),
                IBV_QP_QKEY | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_SQ_PSN);
  needs_exactly(one, one.rtr_attributes(one.number()), rc_rtr_mask,
                IBV_QP_QKEY | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_PORT);
  needs_exactly(one, one.rts_attributes(), rc_rts_mask,
                IBV_QP_QKEY | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU);
}

TEST_CASE("states: attributes that each transition of a UC queue pair needs", "[uc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  end_options chosen;
  chosen.type = IBV_QPT_UC;
  chosen.access = IBV_ACCESS_REMOTE_WRITE;
  end one{on, chosen};
  needs_exactly(one, one.init_attributes(), one.full_init_mask(),
                IBV_QP_QKEY | IBV_QP_AV | IBV_QP_DEST_QPN);
  needs_exactly(one, one.rtr_attributes(one.number()), rtr_mask,
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN);
  needs_exactly(one, one.rts_attributes(), rts_mask,
                IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT);
}

TEST_CASE("states: attributes that each transition of a UD queue pair needs", "[ud][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  end_options chosen;
  chosen.type = IBV_QPT_UD;
  end one{on, chosen};
  needs_exactly(one, one.init_attributes(), one.full_init_mask(),
                IBV_QP_ACCESS_FLAGS | IBV_QP_AV | IBV_QP_DEST_QPN);
  needs_exactly(one, one.rtr_attributes(0), IBV_QP_STATE,
                IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU);
  needs_exactly(one, one.rts_attributes(), rts_mask, IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT);
}

TEST_CASE("states: illegal transitions are refused", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  end one{on};
  refuse(one, {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE});
  one.to_init();
  refuse(one, {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE});
  one.to_rtr(one.number());
  refuse(one, {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_SQD, IBV_QPS_SQE});
  one.to_rts();
  refuse(one, {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_SQE});
  REQUIRE(one.modify(IBV_QPS_ERR) == 0);
  refuse(one, {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE});
}

TEST_CASE("states: ERR and RESET from each state", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  for (int steps = 0; steps <= 4; ++steps) {
    INFO("steps " << steps);
    for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_ERR}) {
      end one{on};
      if (steps > 0) one.to_init();
      if (steps > 1) one.to_rtr(one.number());
      if (steps > 2) one.to_rts();
      if (steps > 3) REQUIRE(one.modify(IBV_QPS_ERR) == 0);
      // The kernel's table has no way from RESET to ERR, IBA has.
      if (steps == 0 && to == IBV_QPS_ERR) {
        const int said = one.modify(to);
        CHECK((said == 0 || said == EINVAL));
        CHECK(one.state() == (said == 0 ? IBV_QPS_ERR : IBV_QPS_RESET));
        continue;
      }
      // Some providers refuse RESET of what is in RESET (FC-04).
      CHECK(one.modify(to) == 0);
      CHECK(one.state() == to);
    }
  }
}

TEST_CASE("states: values out of range are refused and change nothing", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  end one{on};
  const auto refused = [&](ibv_qp_attr with, int mask) {
    const ibv_qp_state before = one.state();
    const int said = one.modify(with, mask);
    INFO(std::strerror(said));
    CHECK((said == EINVAL || said == ENODATA));  // the kernel's word for a GID that is not there
    CHECK(one.state() == before);
  };
  ibv_qp_attr with = one.init_attributes();
  for (const std::uint8_t port : {std::uint8_t{0}, std::uint8_t{2}, std::uint8_t{255}}) {
    with.port_num = port;
    refused(with, one.full_init_mask());
  }
  one.to_init();
  with = one.rtr_attributes(one.number());
  // Above the active MTU rxe takes it, above the port's maximum nobody does.
  with.path_mtu = ibv_mtu((on.is_rxe() ? on.port.max_mtu : on.port.active_mtu) + 1);
  refused(with, rc_rtr_mask);
  with = one.rtr_attributes(one.number());
  with.ah_attr.grh.sgid_index = 255;
  refused(with, rc_rtr_mask);
  if (on.device.max_qp_rd_atom < 255 && !on.is_rxe()) {  // rxe looks at the other depth alone
    with = one.rtr_attributes(one.number());
    with.max_dest_rd_atomic = std::uint8_t(on.device.max_qp_rd_atom + 1);
    refused(with, rc_rtr_mask);
  }
  one.to_rtr(one.number());
  with = one.rts_attributes();
  with.timeout = 32;
  refused(with, rc_rts_mask);
  if (on.device.max_qp_init_rd_atom < 255) {
    with = one.rts_attributes();
    with.max_rd_atomic = std::uint8_t(on.device.max_qp_init_rd_atom + 1);
    refused(with, rc_rts_mask);
  }
  one.to_rts();
}

TEST_CASE("states: through RESET and back to work", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  region out{on, 64};
  region in{on, 64};
  linked pair{on};
  for (unsigned round = 0; round < 3; ++round) {
    INFO("round " << round);
    out.fill(round);
    pair.there.post(receive_work{1, {in.piece()}});
    pair.here.post(send_work{2, IBV_WR_SEND, {out.piece()}});
    CHECK(is(pair.here.sends().take_one(), 2));
    CHECK(is(pair.there.receives().take_one(), 1));
    CHECK(in.same(0, out, 0, 64));
    // What is still posted is forgotten without a completion.
    pair.there.post(receive_work{3, {in.piece()}});
    for (end* each : {&pair.here, &pair.there}) {
      if (round == 1) REQUIRE(each->modify(IBV_QPS_ERR) == 0);
    }
    if (round == 1) CHECK(is(pair.there.receives().take_one(), 3, {IBV_WC_WR_FLUSH_ERR}));
    for (end* each : {&pair.here, &pair.there}) {
      REQUIRE(each->modify(IBV_QPS_RESET) == 0);
      CHECK(each->state() == IBV_QPS_RESET);
    }
    CHECK(pair.there.receives().stays_empty());
    for (end* each : {&pair.here, &pair.there}) each->to_init();
    pair.here.to_rtr(pair.there.number());
    pair.there.to_rtr(pair.here.number());
    for (end* each : {&pair.here, &pair.there}) each->to_rts();
  }
}

TEST_CASE("states: access rights can change later on", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  region out{on, 64};
  region in{on, 64};
  end_options closed;
  closed.access = 0;
  linked pair{on, {}, closed};
  out.fill(1);
  ibv_qp_attr with{};
  with.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  REQUIRE(pair.there.modify(with, IBV_QP_ACCESS_FLAGS) == 0);
  pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {out.piece()}}.at(in));
  CHECK(is(pair.here.sends().take_one(), 1));
  CHECK(in.same(0, out, 0, 64));
}

TEST_CASE("states: a drained send queue holds its requests back", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  region out{on, 64};
  region in{on, 64};
  linked pair{on};
  pair.there.post(receive_work{1, {in.piece()}});
  pair.there.post(receive_work{2, {in.piece()}});
  REQUIRE(pair.here.modify(IBV_QPS_SQD) == 0);
  CHECK(pair.here.state() == IBV_QPS_SQD);
  pair.here.post(send_work{3, IBV_WR_SEND, {out.piece()}});
  CHECK(pair.here.sends().stays_empty());
  // Receiving goes on.
  pair.here.post(receive_work{4, {in.piece()}});
  pair.there.post(send_work{5, IBV_WR_SEND, {out.piece()}});
  CHECK(is(pair.here.receives().take_one(), 4));
  REQUIRE(pair.here.modify(IBV_QPS_RTS) == 0);
  // rxe looks at its send queue again with the next post.
  pair.here.post(send_work{6, IBV_WR_SEND, {out.piece()}});
  const auto done = pair.here.sends().take(2);
  CHECK(is(done[0], 3));
  CHECK(is(done[1], 6));
  pair.there.receives().take(2);
}

TEST_CASE("states: query tells what was granted and set", "[rc][states]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_STATES_OR_SKIP(on);
  linked pair{on};
  ibv_qp_attr found{};
  ibv_qp_init_attr made{};
  REQUIRE(on.calls.query_qp(pair.here.native(), &found,
                            IBV_QP_STATE | IBV_QP_CAP | IBV_QP_DEST_QPN | IBV_QP_ACCESS_FLAGS |
                                IBV_QP_PATH_MTU | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_TIMEOUT | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PORT,
                            &made) == 0);
  const end_options& chosen = pair.here.options();
  CHECK(found.qp_state == IBV_QPS_RTS);
  CHECK(found.dest_qp_num == pair.there.number());
  CHECK(found.port_num == 1);
  CHECK(found.path_mtu == std::min(chosen.mtu, on.port.active_mtu));
  CHECK(found.retry_cnt == chosen.retries);
  CHECK(found.rnr_retry == chosen.not_ready_retries);
  CHECK(found.timeout == chosen.timeout);
  CHECK(found.max_rd_atomic == chosen.reads);
  CHECK((found.qp_access_flags & unsigned(chosen.access)) == unsigned(chosen.access));
  // rxe grants what was asked and tells of its rounded queue here only.
  CHECK(made.cap.max_send_wr >= pair.here.granted().max_send_wr);
  CHECK(made.cap.max_recv_wr >= pair.here.granted().max_recv_wr);
  CHECK(made.cap.max_send_wr >= chosen.cap.max_send_wr);
  CHECK(made.cap.max_inline_data == pair.here.granted().max_inline_data);
  CHECK(made.sq_sig_all == 0);
}
