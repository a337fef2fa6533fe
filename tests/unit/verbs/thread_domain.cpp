// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/posting/builder.hpp>
#include <verbena/policy/threading/shared.hpp>
#include <verbena/verbs/thread_domain.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::kind;
using vb::errors::returning;

namespace {

struct host {
  fabricated::device adapter;
  vb::verbs::device opened = adapter.open();
  vb::verbs::protection_domain domain = vb::verbs::protection_domain::create(opened).value();

  template <class... Policies>
  auto make() {
    return vb::endpoint<returning, Policies...>::open(domain);
  }
  bool has_thread_domain() const {
    return adapter.live(kind::thread_domain) + adapter.live(kind::parent_domain) != 0;
  }
  /// The kinds destroyed since it was last asked, in order.
  std::vector<kind> destroyed() { return std::exchange(adapter.destroyed, {}); }
};

const fabricated::domain& domain_of(const auto& end) {
  return fabricated::machine::of(end.native_handle()->pd);
}

}  // namespace

TEMPLATE_TEST_CASE("threading::single_owner: a queue pair has a thread domain of its own",
                   "[thread_domain]", vb::posting::list, vb::posting::builder) {
  host on;
  auto first = on.make<TestType>().value();
  auto second = on.make<TestType>().value();
  const fabricated::domain& of_first = domain_of(first);
  const fabricated::domain& of_second = domain_of(second);
  CHECK(of_first.protects() == on.domain.native_handle());
  REQUIRE(of_first.thread != nullptr);
  CHECK(of_first.thread->users == 1);
  CHECK(of_first.thread != of_second.thread);

  // Memory is of the domain, and can be used by both.
  const fabricated::scratch memory = fabricated::memory(on.domain);
  CHECK((*on.adapter.regions.begin())->pd == on.domain.native_handle());
  CHECK(first.post(vb::receive(memory.first(8))));
  CHECK(second.post(vb::receive(memory.first(8))));
}

TEST_CASE("a thread domain goes after its queue pair and before the protection domain") {
  host on;
  {
    auto made = on.make().value();
    on.domain = {};
    on.opened = {};
    CHECK(on.adapter.live(kind::domain) == 1);
  }
  CHECK(on.destroyed() == std::vector{kind::queue_pair, kind::parent_domain, kind::thread_domain,
                                      kind::completion_queue, kind::domain, kind::device});
}

TEST_CASE("a protection domain is not closed under a thread domain") {
  host on;
  auto thread = vb::verbs::thread_domain::create_if_any(on.domain).value();
  CHECK(on.domain.close().error() == std::errc::device_or_resource_busy);
  auto moved = std::move(thread);
  CHECK(thread.native_handle() == nullptr);  // NOLINT(bugprone-use-after-move)
  CHECK(on.has_thread_domain());
  moved = {};
  CHECK_FALSE(on.has_thread_domain());
  CHECK(on.domain.close());
}

TEST_CASE("threading::shared: the provider keeps its locks") {
  host on;
  const auto made = on.make<vb::threading::shared>().value();
  CHECK(on.adapter.count(call::alloc_td) == 0);
  CHECK(made.native_handle()->pd == on.domain.native_handle());
}

TEST_CASE("threading::single_owner: without a thread domain where there is none, or none left") {
  const int number = GENERATE(EOPNOTSUPP, ENOSYS, ENOMEM, ENOSPC, EAGAIN);
  const call which = GENERATE(call::alloc_td, call::alloc_parent_domain);
  host on;
  on.adapter.refuse.add(which, number);
  const auto made = on.make().value();
  CHECK_FALSE(on.has_thread_domain());
  CHECK(made.native_handle()->pd == on.domain.native_handle());
}

TEST_CASE("threading::single_owner: a device whose table has no thread domains is used without") {
  host on;
  on.adapter.table.alloc_td = vb::verbs::no_thread_domain;
  const auto made = on.make().value();
  CHECK(made.native_handle()->pd == on.domain.native_handle());
}

TEST_CASE(
    "threading::single_owner: any other failure names what could not be made, and leaks nothing") {
  const auto [which, sentence] = GENERATE(
      std::pair{call::alloc_td, "cannot allocate a thread domain on fabricated0"},
      std::pair{call::alloc_parent_domain, "cannot allocate a parent domain on fabricated0"});
  host on;
  on.adapter.refuse.add(which, EIO);
  const auto refused = on.make();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::io_error);
  CHECK(mentions(refused.error(), sentence));
  CHECK(on.adapter.count(call::create_qp) == 0);
  CHECK_FALSE(on.has_thread_domain());
}

TEST_CASE("a queue pair that can not be made leaves no thread domain") {
  host on;
  on.adapter.refuse.add(call::create_qp, ENOMEM);
  CHECK(on.make().error() == std::errc::not_enough_memory);
  CHECK(on.adapter.count(call::alloc_td) == 1);
  CHECK_FALSE(on.has_thread_domain());
}

TEST_CASE("a queue pair made again for less inline has one thread domain") {
  host on;
  on.adapter.inline_limit = 0;
  const auto made = on.make().value();
  CHECK(on.adapter.count(call::create_qp) > 1);
  CHECK(on.adapter.live(kind::thread_domain) == 1);
}
