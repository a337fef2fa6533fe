// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <string>

#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/policy/completion/busy_poll.hpp>
#include <verbena/policy/transport/rc.hpp>
#include <verbena/verbs/queue_pair.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/link.hpp"
#include "mentions.hpp"

using fabricated::call;
namespace verbs = verbena::verbs;

TEST_CASE("a queue pair that can not be made says what was asked of which device") {
  fabricated::device adapter{"small0"};
  const auto opened = adapter.open();
  const auto domain = verbs::protection_domain::create(opened).value();
  using core = verbena::completion_queue_core<verbena::completion::busy_poll>;
  const auto queue = core::create(opened, {8, 1}, {}).value();
  ibv_qp_init_attr wanted{};
  wanted.send_cq = queue->native();
  wanted.recv_cq = queue->native();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {11, 12, 13, 14, 15};
  adapter.refuse.add(call::create_qp, EINVAL);
  const auto refused = verbs::queue_pair::create(domain, wanted, queue);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::invalid_argument);
  for (const char* part :
       {"small0", "11 send", "12 receive", "13 and 14 pieces", "15 bytes inline"}) {
    CHECK(mentions(refused.error(), part));
  }
}

TEST_CASE("FC-05 what a queue pair was granted is handed back") {
  fabricated::device adapter;
  adapter.grant = [](ibv_qp_cap& cap) { cap.max_send_wr = 32; };
  const auto opened = adapter.open();
  const auto domain = verbs::protection_domain::create(opened).value();
  using core = verbena::completion_queue_core<verbena::completion::busy_poll>;
  const auto queue = core::create(opened, {64, 1}, {}).value();
  ibv_qp_init_attr wanted{};
  wanted.send_cq = queue->native();
  wanted.recv_cq = queue->native();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = 20;
  const auto pair = verbs::queue_pair::create(domain, wanted, queue).value();
  CHECK(wanted.cap.max_send_wr == 32);
}

TEST_CASE("a transition that is refused names the step and changes nothing") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = verbs::protection_domain::create(opened).value();
  fabricated::link link{domain};
  auto& behind = fabricated::machine::of(link.native());
  const std::size_t before = behind.transitions.size();

  ibv_qp_attr again{};
  again.qp_state = IBV_QPS_RTR;
  const auto refused = link.pair.modify(again, verbena::transport::rc::to_receive, "RTR");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::invalid_argument);
  CHECK(
      mentions(refused.error(), "queue pair " + std::to_string(link.native()->qp_num) + " to RTR"));
  CHECK(behind.transitions.size() == before);
  CHECK(behind.qp_base.state == IBV_QPS_RTS);

  adapter.refuse.add(call::modify_qp, -EIO);
  CHECK(link.pair.fail().error() == std::errc::io_error);
  CHECK(behind.qp_base.state == IBV_QPS_RTS);
  CHECK(link.pair.fail().has_value());
  CHECK(behind.qp_base.state == IBV_QPS_ERR);
}
