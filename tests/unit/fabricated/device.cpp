// SPDX-License-Identifier: BSL-1.0
#include "fabricated/device.hpp"

#include <utility>

#include <verbena/verbs/completion_channel.hpp>
#include <verbena/verbs/memory_region.hpp>
#include <verbena/verbs/queue_pair.hpp>

#include "catch.hpp"

using fabricated::call;
using fabricated::kind;
namespace verbs = verbena::verbs;

TEST_CASE("a fabricated device opens, tells its attributes and closes") {
  fabricated::device adapter{"fab7", IBV_TRANSPORT_IWARP};
  adapter.attributes.max_sge = 3;
  {
    const verbs::device opened = adapter.open();
    CHECK(opened.name() == "fab7");
    CHECK(opened.is_iwarp());
    CHECK(opened.attributes().max_sge == 3);
    CHECK(opened.attributes().phys_port_cnt == 1);
    CHECK(adapter.live(kind::device) == 1);
  }
  CHECK(adapter.live(kind::device) == 0);
  CHECK(adapter.count(call::query_device) == 1);
}

TEST_CASE("a fabricated device notices what no correct program does") {
  fabricated::device adapter;
  ibv_context* context = adapter.open_context();
  ibv_pd* domain = adapter.table.alloc_pd(context);

  CHECK(adapter.table.close_device(context) == -1);
  CHECK(errno == EBUSY);
  CHECK(adapter.take_violations().size() == 1);

  char memory[64] = {};
  CHECK(adapter.table.reg_mr(domain, memory, sizeof memory, IBV_ACCESS_REMOTE_WRITE) == nullptr);
  CHECK(errno == EINVAL);
  ibv_mr* region = adapter.table.reg_mr(domain, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region != nullptr);
  CHECK(region->lkey != region->rkey);
  CHECK(adapter.table.dealloc_pd(domain) == EBUSY);
  CHECK(adapter.take_violations().size() == 1);

  ibv_comp_channel* channel = adapter.table.create_comp_channel(context);
  ibv_cq* queue = adapter.table.create_cq(context, 2, nullptr, channel, 0);
  CHECK(ibv_req_notify_cq(queue, 0) == 0);
  adapter.push(queue, {});
  adapter.push(queue, {});
  adapter.push(queue, {});  // one too many
  CHECK(adapter.take_violations().size() == 1);
  ibv_cq* woken = nullptr;
  void* of = nullptr;
  CHECK(adapter.table.get_cq_event(channel, &woken, &of) == 0);
  CHECK(woken == queue);
  CHECK(adapter.table.destroy_cq(queue) == 0);
  CHECK(adapter.take_violations().size() == 1);  // unacknowledged

  CHECK(adapter.table.destroy_comp_channel(channel) == 0);
  CHECK(adapter.table.dereg_mr(region) == 0);
  CHECK(adapter.table.dealloc_pd(domain) == 0);
  CHECK(adapter.table.close_device(context) == 0);
}

TEST_CASE("a fabricated device notices domains that go in the wrong order") {
  fabricated::device adapter;
  ibv_context* context = adapter.open_context();
  ibv_pd* domain = adapter.table.alloc_pd(context);
  ibv_td_init_attr plain{};
  ibv_td* thread = adapter.table.alloc_td(context, &plain);
  ibv_parent_domain_init_attr of{};
  of.pd = domain;
  of.td = thread;
  ibv_pd* parent = adapter.table.alloc_parent_domain(context, &of);

  CHECK(adapter.table.dealloc_td(thread) == EBUSY);
  CHECK(adapter.table.dealloc_pd(domain) == EBUSY);
  CHECK(adapter.take_violations().size() == 2);
  CHECK(adapter.table.dealloc_pd(parent) == 0);
  CHECK(adapter.table.dealloc_td(thread) == 0);
  CHECK(adapter.table.dealloc_pd(domain) == 0);
  CHECK(adapter.table.close_device(context) == 0);
}
