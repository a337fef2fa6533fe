// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "mentions.hpp"
#include "scripted_cm.hpp"

namespace vb = verbena;
using namespace std::chrono_literals;

namespace {

using cm_link = vb::connection<vb::setup::cm, vb::errors::returning>;
using cm_end = vb::endpoint<vb::setup::cm, vb::errors::returning>;

constexpr auto brief = 20ms;
const vb::address there{"192.0.2.1", 7471};

struct bed {
  fabricated::device adapter{};
  scripted_cm cm{adapter};
  vb::verbs::protection_domain domain =
      vb::verbs::protection_domain::create(adapter.open()).value();

  vb::result<cm_link> connect(std::chrono::nanoseconds timeout = brief) {
    return cm_end::open(domain).value().connect(there, timeout);
  }
  vb::result<cm_link> accept(std::chrono::nanoseconds timeout = brief) {
    auto port = cm_link::listener::open(domain, there);
    if (!port) return port.error();
    return port.value().accept(timeout);
  }
};

/// Every event there is in one version or another, and one that is none.
std::vector<int> all_events() {
  std::vector<int> all;
  for (int each = 0; each < 20; ++each) all.push_back(each);
  all.push_back(99);
  return all;
}

bool ends(int of) {
  switch (of) {
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: return true;
    default: return false;
  }
}

}  // namespace

TEST_CASE("FC-34 FC-36 every event at every step of connecting has an outcome and leaves nothing") {
  const std::vector<std::pair<std::string, std::vector<int>>> steps{
      {"resolve_addr", {RDMA_CM_EVENT_ADDR_RESOLVED}},
      {"resolve_route", {RDMA_CM_EVENT_ROUTE_RESOLVED}},
      {"connect", {RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_ESTABLISHED}}};
  for (const auto& [step, wanted] : steps) {
    for (const int type : all_events()) {
      if (type == RDMA_CM_EVENT_CONNECT_REQUEST) continue;  // never for such an id
      INFO(step << " and event " << type);
      bed on;
      on.cm.after[step] = {{type, -EHOSTDOWN}};
      {
        const auto made = on.connect();
        const bool right = std::count(wanted.begin(), wanted.end(), type) != 0;
        CHECK(made.has_value() == right);
        if (!made) {
          INFO(made.error().message());
          CHECK(mentions(made.error(), "192.0.2.1:7471"));
          CHECK((made.error() == vb::errc::timed_out) == !ends(type));
        }
      }
      CHECK(on.cm.is_clean());
    }
  }
}

TEST_CASE("FC-36 what comes before the event that is waited for does no harm") {
  bed on;
  on.cm.after["connect"] = {{RDMA_CM_EVENT_ADDR_CHANGE}, {18}, {RDMA_CM_EVENT_CONNECT_RESPONSE}};
  on.cm.after["establish"] = {{RDMA_CM_EVENT_ESTABLISHED}};
  {
    auto made = on.connect();
    REQUIRE(made);
    CHECK(!made.value().peer_gone());
    CHECK(made.value().close());
  }
  CHECK(on.cm.is_clean());
}

TEST_CASE("FC-34 FC-36 every event instead of ESTABLISHED has an outcome and leaves nothing") {
  for (const int type : all_events()) {
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) continue;
    INFO("event " << type);
    bed on;
    on.cm.after["accept"] = {{type, -ECONNABORTED}};
    {
      const auto made = on.accept();
      CHECK(made.has_value() == (type == RDMA_CM_EVENT_ESTABLISHED));
      if (!made) {
        CHECK(mentions(made.error(), "accepting "));
        CHECK((made.error() == vb::errc::timed_out) == !ends(type));
      }
    }
    CHECK(on.cm.is_clean());
  }
}

TEST_CASE("FC-36 every event on a connection either ends it or does not, once") {
  for (const int type : all_events()) {
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) continue;
    INFO("event " << type);
    bed on;
    {
      auto made = on.connect();
      REQUIRE(made);
      cm_link& link = made.value();
      CHECK(!link.peer_gone());
      on.cm.push(on.cm.last, {type});
      on.cm.push(on.cm.last, {RDMA_CM_EVENT_ADDR_CHANGE});
      CHECK(link.peer_gone() == ends(type));
      CHECK(link.peer_gone() == ends(type));
      CHECK(on.cm.count["disconnect"] == (ends(type) ? 1 : 0));
      on.cm.push(on.cm.last, {RDMA_CM_EVENT_TIMEWAIT_EXIT});
      CHECK(link.close());
      CHECK(link.close());
      CHECK(on.cm.count["disconnect"] == 1);
    }
    CHECK(on.cm.is_clean());
  }
}

TEST_CASE("FC-38 a connection that is closed already by its peer closes without an error") {
  for (const int refused : {EINVAL, ENOTCONN}) {
    bed on;
    on.cm.refuse["disconnect"] = refused;
    auto made = on.connect();
    REQUIRE(made);
    CHECK(made.value().close());
  }
  bed on;
  on.cm.refuse["disconnect"] = EIO;
  auto made = on.connect();
  REQUIRE(made);
  const auto closed = made.value().close();
  REQUIRE(!closed);
  CHECK(closed.error() == std::errc::io_error);
  CHECK(made.value().close());
  CHECK(on.cm.is_clean());
}

TEST_CASE("FC-34 every call that fails says so with the address and leaves nothing") {
  for (const char* call : {"channel", "create_id", "resolve_addr", "resolve_route", "init_qp_attr",
                           "connect", "establish"}) {
    INFO(call);
    bed on;
    on.cm.refuse[call] = EIO;
    const auto made = on.connect();
    REQUIRE(!made);
    CHECK(made.error() == std::errc::io_error);
    CHECK(mentions(made.error(), "192.0.2.1:7471"));
    CHECK(on.cm.is_clean());
  }
  for (const char* call :
       {"channel", "create_id", "bind_addr", "listen", "migrate_id", "init_qp_attr", "accept"}) {
    INFO(call);
    bed on;
    on.cm.refuse[call] = EIO;
    const auto made = on.accept();
    REQUIRE(!made);
    CHECK(made.error() == std::errc::io_error);
    CHECK(on.cm.is_clean());
  }
}

TEST_CASE("FC-37 the reason of a rejection is an error of its own") {
  const std::vector<std::pair<int, vb::errc>> reasons{
      {8, vb::errc::no_listener},        {10, vb::errc::stale_connection},
      {28, vb::errc::rejected},          {3, vb::errc::rejected},
      {4, vb::errc::timed_out},          {-ECONNREFUSED, vb::errc::no_listener},
      {-ECONNRESET, vb::errc::rejected}, {-EPIPE, vb::errc::rejected}};
  for (const auto& [status, expected] : reasons) {
    INFO("status " << status);
    bed on;
    on.cm.after["connect"] = {{RDMA_CM_EVENT_REJECTED, status}};
    CHECK(on.connect().error() == expected);
    // A TCP connection is refused by the call itself.
    on.cm.after["connect"] = {};
    on.cm.refuse["connect"] = ECONNREFUSED;
    CHECK(on.connect().error() == vb::errc::no_listener);
    on.cm.refuse["connect"] = ETIMEDOUT;
    CHECK(on.connect().error() == vb::errc::unreachable);
  }
  bed on;
  on.cm.after["connect"] = {{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT}};
  CHECK(on.connect().error() == vb::errc::unreachable);
  on.cm.after["resolve_addr"] = {{RDMA_CM_EVENT_ADDR_ERROR, -ENODEV}};
  CHECK(on.connect().error() == std::errc::no_such_device);
}

TEST_CASE("a request that is dropped is destroyed with its channel") {
  bed on;
  on.cm.after["listen"] = {3, {RDMA_CM_EVENT_CONNECT_REQUEST}};
  {
    auto port = cm_link::listener::open(on.domain, there).value();
    {
      auto first = port.next(brief);
      REQUIRE(first);
      auto second = port.next(brief);
      REQUIRE(second);
      CHECK(std::move(second).value().reject());
    }
    CHECK(on.cm.count["reject"] == 1);
  }
  CHECK(on.cm.is_clean());
}

TEST_CASE("requests through another device or of another version are rejected and do not stay") {
  bed on;
  fabricated::device elsewhere{"fabricated1"};
  auto wrong = scripted_cm::introduction();
  wrong[0] = std::byte{7};
  on.cm.after["listen"] = {{RDMA_CM_EVENT_CONNECT_REQUEST, 0, wrong}};
  {
    auto port = cm_link::listener::open(on.domain, there).value();
    const auto none = port.next(brief);
    REQUIRE(!none);
    CHECK(none.error() == vb::errc::wire_version);
    CHECK(on.cm.count["reject"] == 1);
    on.cm.push(port.native_handle(), {RDMA_CM_EVENT_CONNECT_REQUEST});
    ibv_context other{};
    other.device = &elsewhere.native;
    on.cm.last->verbs = &other;
    CHECK(port.next(brief).error() == vb::errc::timed_out);
    CHECK(on.cm.count["reject"] == 2);
    on.cm.push(port.native_handle(), {RDMA_CM_EVENT_DEVICE_REMOVAL});
    CHECK(port.next(brief).error() == vb::errc::no_device);
  }
  CHECK(on.cm.is_clean());
}

TEST_CASE("a device without RDMA CM says so") {
  fabricated::device adapter;
  const auto domain = vb::verbs::protection_domain::create(adapter.open()).value();
  CHECK(cm_link::listener::open(domain, there).error() == vb::errc::not_supported);
  CHECK(cm_end::open(domain).value().connect(there, brief).error() == vb::errc::not_supported);
}
