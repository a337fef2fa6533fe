// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>

#include <verbena/verbena.hpp>

#include "child.hpp"
#include "cm/side.hpp"
#include "side.hpp"
#include "sleeper.hpp"

using namespace soft_test;
namespace soft = verbena::soft;
namespace vb = verbena;

namespace {

/// How a process ends that forks from this one and does `what`; 0 if it comes to the end of it.
int fork_that(const std::function<int()>& what) {
  const pid_t made = ::fork();
  if (made == 0) ::_exit(what());
  REQUIRE(made > 0);
  int status = 0;
  REQUIRE(::waitpid(made, &status, 0) == made);
  return status;
}

/// What stands on a fabric, to see that nothing of it changes.
class snapshot {
 public:
  explicit snapshot(const side& on)
      : of_{context::of(on.native).fabric->shared()}, was_{new char[sizeof of_]} {
    std::memcpy(was_.get(), static_cast<const void*>(&of_), sizeof of_);
  }
  bool is_as_it_was() const {
    return std::memcmp(was_.get(), static_cast<const void*>(&of_), sizeof of_) == 0;
  }

 private:
  const soft::segment& of_;
  std::unique_ptr<char[]> was_;
};

}  // namespace

TEST_CASE("soft: a forked process that closes its copy of a device leaves that alone", "[soft]") {
  const std::string name = fabric_name();
  std::optional<verbena::verbs::device> device{verbena::verbs::open(name).value()};
  const pid_t child = ::fork();
  if (child == 0) {
    device.reset();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const auto& fabric = *context::of(device->native_handle()).fabric;
  CHECK(::access(fabric.path().c_str(), F_OK) == 0);
  const auto& entry = fabric.shared().processes[verbena::soft::place_of(fabric.me())];
  CHECK(entry.owner == fabric.me());
  const side joins{name};  // the same fabric, not another of its name
  CHECK(context::of(joins.native).fabric->identity() == fabric.identity());
}

TEST_CASE("soft: a forked process that destroys its copies leaves its parent's alone", "[soft]") {
  const std::string name = fabric_name();
  std::optional<side> here{std::in_place, name};
  std::optional<sleeper> asleep{std::in_place, *here};
  std::optional<side> there{std::in_place, name};
  end_options with;
  with.channel = asleep->channel;
  std::optional<end> one{std::in_place, *here, with};
  std::optional<end> other{std::in_place, *there};
  one->connect(other->pair->qp_num);
  other->connect(one->pair->qp_num);
  ibv_srq_init_attr asked{};
  asked.attr = {2, 1, 0};
  ibv_srq* const shared = here->calls.create_srq(here->domain, &asked);
  REQUIRE(shared != nullptr);
  REQUIRE(one->receive(7, {here->piece(0, 64)}) == 0);
  // A message that has come, in its completion, and an event that has been got.
  REQUIRE(other->send(1, {there->piece(64, 8)}) == 0);
  REQUIRE(ibv_req_notify_cq(one->receives, 0) == 0);
  const snapshot before{*here};
  const int ended = fork_that([&] {
    if (here->calls.destroy_srq(shared) != 0) return 1;
    one.reset();
    other.reset();
    asleep.reset();
    there.reset();
    here.reset();
    return 0;
  });
  CHECK(ended == 0);
  CHECK(before.is_as_it_was());
  CHECK(status_of(one->receives, 7) == IBV_WC_SUCCESS);
  CHECK(status_of(other->sends, 1) == IBV_WC_SUCCESS);
  there->word(64) = 5;
  REQUIRE(other->rdma(IBV_WR_RDMA_WRITE, 2, there->piece(64, 8),
                      reinterpret_cast<std::uintptr_t>(here->memory), here->region->rkey) == 0);
  CHECK(status_of(other->sends, 2) == IBV_WC_SUCCESS);
  CHECK(here->word(0) == 5);
  REQUIRE(one->receive(8, {here->piece(0, 64)}) == 0);
  REQUIRE(ibv_req_notify_cq(one->receives, 0) == 0);
  REQUIRE(other->send(3, {there->piece(64, 8)}) == 0);
  const auto got = asleep->next(one->receives);
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 8);
  CHECK(here->calls.destroy_srq(shared) == 0);
}

TEST_CASE("soft: a forked process does nothing on its parent's device", "[soft]") {
  linked both;
  REQUIRE(both.other.receive(7, {both.there.piece(0, 64)}) == 0);
  REQUIRE(both.write(1) == 0);
  const snapshot before{both.here};
  const int ended = fork_that([&] {
    const verbena::verbs::control_table& calls = both.here.calls;
    int failed = 0;
    int at = 0;
    const auto check = [&](bool is_so) {
      ++at;
      if (!is_so && failed == 0) failed = at;
    };
    const auto refused = [&](bool is_null) { check(is_null && errno == ENODEV); };
    ibv_wc found{};
    ibv_async_event told{};
    ibv_qp_init_attr with{};
    with.send_cq = with.recv_cq = both.one.sends;
    with.qp_type = IBV_QPT_RC;
    check(both.write(2) == ENODEV);
    check(both.other.receive(8, {}) == ENODEV);
    check(ibv_poll_cq(both.one.sends, 1, &found) < 0);
    check(ibv_req_notify_cq(both.one.sends, 0) == ENODEV);
    check(both.one.modify(IBV_QPS_ERR, 0) == ENODEV);
    refused(calls.create_cq(both.here.native, 4, nullptr, nullptr, 0) == nullptr);
    refused(calls.create_qp(both.here.domain, &with) == nullptr);
    refused(calls.reg_mr(both.here.domain, both.here.memory, 64, 0) == nullptr);
    refused(calls.allocate(both.here.native, 64) == nullptr);
    refused(calls.get_async_event(both.here.native, &told) == -1);
    return failed;
  });
  CHECK(ended == 0);
  CHECK(before.is_as_it_was());
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  REQUIRE(both.one.send(3, {both.here.piece(0, 8)}) == 0);
  CHECK(status_of(both.other.receives, 7) == IBV_WC_SUCCESS);
}

TEST_CASE("soft: a forked process that destroys its copies of ids ends no connection",
          "[soft][cm]") {
  std::optional<cm_test::pair> both{std::in_place};
  both->establish();
  rdma_cm_id* const more = both->client.routed("127.0.0.1", both->port());
  REQUIRE(more != nullptr);
  REQUIRE(both->client.connect(more, "another") == 0);  // its request waits to be got
  CHECK(fork_that([&] {
          both.reset();
          return 0;
        }) == 0);
  CHECK(both->client.quiet());
  const cm_test::seen request = both->server.next();
  REQUIRE(request.type == RDMA_CM_EVENT_CONNECT_REQUEST);
  REQUIRE(both->client.cm.disconnect(both->active) == 0);
  CHECK(both->server.next().type == RDMA_CM_EVENT_DISCONNECTED);
}

TEST_CASE("soft: a forked process that closes its copy of a connection breaks nothing", "[soft]") {
  const std::string name = fabric_name();
  vb::device device = vb::device::create(vb::verbs::open(name).value()).value();
  vb::endpoint<> first{device};
  vb::endpoint<> second{device};
  auto inbox = device.allocate<vb::sink>(64);
  const auto to_first = first.describe();
  const auto to_second = second.describe();
  std::optional one{std::move(first).connect(to_second)};
  auto other = std::move(second).connect(to_first);
  CHECK(other.post(vb::receive(inbox)));
  const auto quietly = [](const verbena::error&) {};
  const int ended = fork_that([&] {
    verbena::on_destroy_failure(quietly);
    one.reset();
    return 0;
  });
  CHECK(ended == 0);
  auto outbox = device.allocate<vb::source>(64);
  outbox.elements()[0] = std::byte{17};
  CHECK(one->post(vb::send(outbox)));
  one->wait(10s);
  other.wait(10s);
  CHECK(inbox.elements()[0] == std::byte{17});
}
