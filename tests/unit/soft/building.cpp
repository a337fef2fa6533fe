// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include "child.hpp"
#include "side.hpp"

using namespace soft_test;

namespace {

/// What a queue pair on `in` of a kind that is built for is made with.
ibv_qp_init_attr_ex built_for(const side& on, ibv_cq* in, const ibv_qp_cap& cap) {
  ibv_qp_init_attr_ex asked{};
  asked.send_cq = asked.recv_cq = in;
  asked.cap = cap;
  asked.qp_type = IBV_QPT_RC;
  asked.pd = on.domain;
  asked.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  asked.send_ops_flags = IBV_QP_EX_WITH_SEND;
  return asked;
}

}  // namespace

TEST_CASE("soft: receives are posted and completions polled while requests are built", "[soft]") {
  // Another process, since this one could not go on if it failed.
  const std::string fabric = fabric_name();
  child builder{[&](child& parent) {
    side on{fabric};
    end other{on};
    ibv_qp_init_attr_ex asked = built_for(on, other.sends, other.chosen.cap);
    end one{on};  // only for its way of going from state to state
    ibv_qp* const plain = std::exchange(one.pair, on.calls.create_qp_ex(on.native, &asked));
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    ibv_qp_ex* const built = on.calls.to_qp_ex(one.pair);
    bool good = other.receive(1, {}) == 0;
    ibv_wr_start(built);
    built->wr_id = 2;
    built->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(built);
    good = good && one.receive(3, {on.piece(0, 8)}) == 0;
    ibv_wc found{};
    for (int i = 0; i < 1000; ++i) good = good && ibv_poll_cq(other.sends, 1, &found) == 0;
    good = good && ibv_wr_complete(built) == 0;
    good = good && ibv_poll_cq(other.sends, 1, &found) == 1 && found.wr_id == 2;
    on.calls.destroy_qp(plain);
    parent.say(good ? 1 : 0);
    parent.hear();
  }};
  CHECK(builder.hear() == 1);
}

TEST_CASE("soft: more is built than could be posted, and none of it is", "[soft]") {
  side on{fabric_name()};
  end unused{on};
  ibv_qp_init_attr_ex asked = built_for(on, unused.sends, unused.chosen.cap);
  ibv_qp* const plain = std::exchange(unused.pair, on.calls.create_qp_ex(on.native, &asked));
  unused.connect(unused.pair->qp_num);
  ibv_qp_ex* const built = on.calls.to_qp_ex(unused.pair);
  const auto& kept = verbena::soft::queue_pair::of(unused.pair).built;
  const std::size_t most = kept.size();
  const std::vector<ibv_sge> pieces(100, on.piece(0, 1));
  ibv_wr_start(built);
  SECTION("requests") {
    for (int i = 0; i < 100; ++i) ibv_wr_send(built);
    CHECK(ibv_wr_complete(built) == ENOMEM);
  }
  SECTION("pieces") {
    ibv_wr_send(built);
    const std::size_t room = kept[0].pieces.capacity();
    ibv_wr_set_sge_list(built, pieces.size(), pieces.data());
    CHECK(kept[0].pieces.capacity() == room);
    CHECK(ibv_wr_complete(built) == EINVAL);
  }
  SECTION("inline data") {
    ibv_wr_send(built);
    const std::size_t room = kept[0].inlined.capacity();
    ibv_wr_set_inline_data(built, on.memory, 1000);
    CHECK(kept[0].inlined.capacity() == room);
    CHECK(ibv_wr_complete(built) == ENOMEM);
  }
  CHECK(kept.size() == most);  // nothing has been allocated, which could fail
  CHECK(stays_empty(unused.sends));
  on.calls.destroy_qp(plain);
}
