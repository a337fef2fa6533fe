// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/policy/completion/event_driven.hpp>
#include <verbena/verbs/completion_channel.hpp>
#include <verbena/verbs/memory_region.hpp>
#include <verbena/verbs/object.hpp>
#include <verbena/verbs/queue_pair.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

using fabricated::call;
using fabricated::kind;
namespace verbs = verbena::verbs;

namespace {

using queue_core = verbena::completion_queue_core<verbena::completion::event_driven>;

/// One owner of each kind.
struct family {
  explicit family(fabricated::device& adapter) : device{adapter.open()} {
    domain = verbs::protection_domain::create(device).value();
    region = verbs::memory_region::create(domain, memory.data(), memory.size(), 0).value();
    channel = verbs::completion_channel::create(device).value();
    queue = queue_core::create(device, {8, 1}, channel.share()).value();
    ibv_qp_init_attr wanted{};
    wanted.send_cq = queue->native();
    wanted.recv_cq = queue->native();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {4, 4, 1, 1, 0};
    pair = verbs::queue_pair::create(domain, wanted, queue).value();
  }

  std::array<char, 64> memory{};
  verbs::device device;
  verbs::protection_domain domain;
  verbs::memory_region region;
  verbs::completion_channel channel;
  std::shared_ptr<queue_core> queue;
  verbs::queue_pair pair;
};

std::vector<verbena::error> reported;

/// Collects what destructors report instead of printing it.
class collected_reports {
 public:
  collected_reports() {
    reported.clear();
    before_ =
        verbena::on_destroy_failure([](const verbena::error& value) { reported.push_back(value); });
  }
  collected_reports(const collected_reports&) = delete;
  collected_reports& operator=(const collected_reports&) = delete;
  ~collected_reports() { verbena::on_destroy_failure(before_); }

 private:
  verbena::destroy_failure_hook before_;
};

}  // namespace

TEST_CASE("FC-22 objects dropped in any order are destroyed children first") {
  std::array<int, 6> order{0, 1, 2, 3, 4, 5};
  do {
    fabricated::device adapter;
    family all{adapter};
    for (const int each : order) {
      switch (each) {
        case 0: all.device = {}; break;
        case 1: all.domain = {}; break;
        case 2: all.region = {}; break;
        case 3: all.channel = {}; break;
        case 4: all.queue = {}; break;
        default: all.pair = {}; break;
      }
    }
    // The adapter notices a parent destroyed under its children, and what is left alive.
    const auto violations = adapter.take_violations();
    if (violations.empty() && adapter.destroyed.size() == 6) continue;
    FAIL("order " << order[0] << order[1] << order[2] << order[3] << order[4] << order[5] << ": "
                  << (violations.empty() ? std::string{"not all destroyed"} : violations.front()));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("FC-22 what is dropped first goes as soon as its last child does") {
  fabricated::device adapter;
  family all{adapter};
  all.device = {};
  all.domain = {};
  all.queue = {};
  CHECK(adapter.destroyed.empty());
  all.pair = {};
  CHECK(adapter.destroyed == std::vector{kind::queue_pair, kind::completion_queue});
  all.region = {};
  CHECK(adapter.destroyed ==
        std::vector{kind::queue_pair, kind::completion_queue, kind::region, kind::domain});
  all.channel = {};
  CHECK(adapter.destroyed.back() == kind::device);
}

TEST_CASE("FC-22 each kind of object refused with EBUSY stays and can be closed again") {
  fabricated::device adapter;
  family all{adapter};
  const auto refused_once = [&](call with, kind of, auto&& close) {
    INFO(name_of(of));
    adapter.refuse.add(with, EBUSY);
    const verbena::result<void> first = close();
    REQUIRE_FALSE(first.has_value());
    CHECK(first.error() == std::errc::device_or_resource_busy);
    CHECK(mentions(first.error(), name_of(of)));
    CHECK(adapter.live(of) == 1);
    CHECK(close().has_value());
    CHECK(adapter.live(of) == 0);
    CHECK(close().has_value());
  };
  refused_once(call::destroy_qp, kind::queue_pair, [&] { return all.pair.close(); });
  refused_once(call::dereg_mr, kind::region, [&] { return all.region.close(); });
  refused_once(call::dealloc_pd, kind::domain, [&] { return all.domain.close(); });
  all.queue = {};
  refused_once(call::destroy_comp_channel, kind::channel, [&] { return all.channel.close(); });
}

TEST_CASE("FC-22 an object in use stays when it is closed, and the provider is not asked") {
  fabricated::device adapter;
  family all{adapter};
  CHECK(all.domain.close().error() == std::errc::device_or_resource_busy);
  CHECK(all.channel.close().error() == std::errc::device_or_resource_busy);
  CHECK(all.domain.native_handle() != nullptr);
  CHECK(all.channel.native_handle() != nullptr);
  CHECK(adapter.count(call::dealloc_pd) == 0);
  CHECK(adapter.count(call::destroy_comp_channel) == 0);
}

TEST_CASE("FC-22 moved-from objects are inert") {
  fabricated::device adapter;
  family all{adapter};
  const auto inert = [](auto& from) {
    const auto kept = std::move(from);
    CHECK(from.native_handle() == nullptr);  // NOLINT(bugprone-use-after-move)
    CHECK(from.close().has_value());
    return kept.native_handle() != nullptr;
  };
  CHECK(inert(all.pair));
  CHECK(inert(all.region));
  CHECK(inert(all.domain));
  CHECK(inert(all.channel));
  CHECK(inert(all.device));
}

TEST_CASE(
    "FC-22 a destructor that can not destroy reports it with its errno and does not try again") {
  fabricated::device adapter;
  adapter.expect_leaks();
  const collected_reports collecting;
  const verbs::control_table* calls = nullptr;
  ibv_pd* left = nullptr;
  {
    const verbs::device opened = adapter.open();
    calls = &opened.table();
    auto domain = verbs::protection_domain::create(opened).value();
    left = domain.native_handle();
    adapter.refuse.add(call::dealloc_pd, EBUSY);
  }
  REQUIRE_FALSE(reported.empty());
  CHECK(reported.front() == std::errc::device_or_resource_busy);
  CHECK(mentions(reported.front(), "protection domain"));
  CHECK(adapter.count(call::dealloc_pd) == 1);
  CHECK(adapter.live(kind::domain) == 1);
  adapter.take_violations();  // the device could then not be closed either

  ibv_context* const device = left->context;
  CHECK(calls->dealloc_pd(left) == 0);
  CHECK(calls->close_device(device) == 0);
}

TEST_CASE("FC-22 a negative errno of a destroy call is reported positive") {
  fabricated::device adapter;
  family all{adapter};
  adapter.refuse.add(call::destroy_qp, -EBUSY);
  CHECK(all.pair.close().error() == std::errc::device_or_resource_busy);
  CHECK(all.pair.close().has_value());
}

TEST_CASE("the hook for failing destructors is handed back when it is replaced") {
  const auto mine = [](const verbena::error&) {};
  const verbena::destroy_failure_hook before = verbena::on_destroy_failure(mine);
  CHECK(before != nullptr);
  CHECK(verbena::on_destroy_failure(before) == static_cast<verbena::destroy_failure_hook>(mine));
}
