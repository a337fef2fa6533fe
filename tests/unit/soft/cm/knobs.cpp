// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <string>

#include "side.hpp"

using namespace cm_test;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

TEST_CASE("soft cm: a peer that does not answer is unreachable in the time set", "[soft][cm]") {
  pair both;
  both.client.knobs().cm_timeout_ms = 50;
  both.server.knobs().cm_timeout_ms = 50;
  const auto begun = clock_type::now();
  SECTION("the server's program") {
    REQUIRE(both.client.connect(both.active) == 0);
    CHECK(!both.client.readable());
    CHECK(both.client.readable(10s));
    const seen failed = both.client.next();
    CHECK(failed.type == RDMA_CM_EVENT_UNREACHABLE);
    CHECK(failed.status == -ETIMEDOUT);
    const seen request = both.server.next();
    CHECK(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(both.server.accept(request.id) == EINVAL);
  }
  SECTION("the client's program") {
    both.client.knobs().cm_timeout_ms = 20'000;
    both.answer();
    const seen failed = both.server.next();
    CHECK(failed.type == RDMA_CM_EVENT_UNREACHABLE);
    CHECK(both.client.next().status == 4);
  }
  SECTION("a goodbye") {
    both.establish();
    REQUIRE(both.client.cm.disconnect(both.active) == 0);
    const seen gone = both.client.next();
    CHECK(gone.type == RDMA_CM_EVENT_DISCONNECTED);
    CHECK(gone.status == -ETIMEDOUT);
  }
  SECTION("across a partition") {
    both.client.knobs().partitioned = true;
    REQUIRE(both.client.connect(both.active) == 0);
    CHECK(both.client.next().type == RDMA_CM_EVENT_UNREACHABLE);
    CHECK(both.server.quiet(0ms));
  }
  SECTION("an ignored request") {
    both.server.knobs().cm_drop_request = 2;
    REQUIRE(both.client.connect(both.active) == 0);
    CHECK(both.server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
    REQUIRE(both.client.next().type == RDMA_CM_EVENT_UNREACHABLE);
    REQUIRE(both.client.connect(both.client.routed("127.0.0.1", both.port())) == 0);
    CHECK(both.server.quiet(0ms));
    CHECK(both.client.next().type == RDMA_CM_EVENT_UNREACHABLE);
  }
  CHECK(clock_type::now() - begun >= 50ms);
}

TEST_CASE("soft cm: a partition between the request and the answer", "[soft][cm]") {
  pair both;
  both.client.knobs().cm_timeout_ms = 50;
  both.ask();
  both.client.knobs().partitioned = true;
  REQUIRE(both.server.accept(both.passive) == 0);
  CHECK(both.client.next().type == RDMA_CM_EVENT_UNREACHABLE);
}

TEST_CASE("soft cm: late events come in order", "[soft][cm]") {
  pair both;
  both.server.knobs().cm_delay_ms = 60;
  const auto begun = clock_type::now();
  REQUIRE(both.client.connect(both.active) == 0);
  CHECK(both.server.quiet(0ms));
  CHECK(!both.server.readable());
  CHECK(both.server.readable(10s));
  CHECK(both.server.next().type == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(clock_type::now() - begun >= 60ms);
  rdma_cm_id* first = both.server.id();
  rdma_cm_id* second = both.server.id();
  REQUIRE(both.server.resolve(first, "127.0.0.1", 1) == 0);
  both.server.knobs().cm_delay_ms = 0;
  REQUIRE(both.server.resolve(second, "127.0.0.1", 1) == 0);
  CHECK(both.server.next().id == first);
  CHECK(both.server.next().id == second);
}

TEST_CASE("soft cm: a late event goes with its destroyed id", "[soft][cm]") {
  pair both;
  both.server.knobs().cm_delay_ms = 10'000;
  REQUIRE(both.client.connect(both.active) == 0);
  CHECK(both.server.quiet());
  both.server.destroy(both.listener);
  CHECK(both.client.next().status == 28);
  CHECK(both.server.quiet(0ms));
}

TEST_CASE("soft cm: lost and repeated events", "[soft][cm]") {
  pair both;
  SECTION("lost") {
    both.server.knobs().cm_drop_event = 1;
    both.answer();
    REQUIRE(both.client.cm.establish(both.active) == 0);
    CHECK(both.server.quiet());
    REQUIRE(both.client.cm.disconnect(both.active) == 0);
    CHECK(both.server.next().type == RDMA_CM_EVENT_DISCONNECTED);
  }
  SECTION("repeated") {
    both.client.knobs().cm_duplicate_event = 1;
    both.answer();
    const seen again = both.client.next();
    CHECK(again.type == RDMA_CM_EVENT_CONNECT_RESPONSE);
    CHECK(again.data.substr(0, 6) == "answer");
    CHECK(both.client.quiet());
  }
}

TEST_CASE("soft cm: a stale connection and other reasons", "[soft][cm]") {
  pair both;
  both.server.knobs().cm_refuse = 10;
  REQUIRE(both.client.connect(both.active) == 0);
  CHECK(both.server.quiet());
  const seen refused = both.client.next();
  CHECK(refused.type == RDMA_CM_EVENT_REJECTED);
  CHECK(refused.status == 10);
}

TEST_CASE("soft cm: private data as on iWARP", "[soft][cm]") {
  pair both;
  both.client.knobs().cm_pad_data = false;
  both.ask();
  REQUIRE(both.server.accept(both.passive, "answer") == 0);
  CHECK(both.client.next().data == "answer");
}
