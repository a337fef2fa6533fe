// SPDX-License-Identifier: BSL-1.0
#include <arpa/inet.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <verbena/chain/post.hpp>
#include <verbena/connection/handlers.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;
using vb::errc;
using vb::operation;

namespace {

constexpr fabricated::link_options short_messages{.max_message = 100};

/// The lengths of what was posted.
std::vector<std::uint64_t> lengths(const auto& test) {
  std::vector<std::uint64_t> all;
  for (const auto& each : test.sends()) all.push_back(each.length());
  return all;
}

struct told {
  std::vector<std::uint32_t> done;
  std::uint32_t retired = 0;
  std::vector<vb::failed> failures;

  void poll(const auto& test) {
    while (test.link.queue->poll(
        vb::on([&](vb::completed<vb::write> each) { add(each); },
               [&](vb::completed<vb::read> each) { add(each); },
               [&](vb::completed<vb::send> each) { add(each); },
               [&](vb::completed<vb::write_with_immediate> each) { add(each); },
               [&](vb::failed each) { failures.push_back(each); }))) {
    }
  }
  void add(const auto& each) {
    done.push_back(each.token());
    retired += each.retired();
  }
};

}  // namespace

TEST_CASE("FC-23 lengths about the limit of a message") {
  for (const auto& [size, messages] : {std::pair{99U, 1U}, std::pair{100U, 1U}, std::pair{101U, 2U},
                                       std::pair{200U, 2U}, std::pair{201U, 3U}}) {
    workbench<> test{short_messages};
    REQUIRE(
        test.link.post(vb::write(test.memory.first(size), fabricated::peer_region()).divided()));
    CHECK(test.sends().size() == messages);
    std::uint64_t sum = 0;
    for (const std::uint64_t each : lengths(test)) {
      CHECK(each <= 100);
      sum += each;
    }
    CHECK(sum == size);
  }
  workbench<> test{short_messages};
  // What is not divided, or can not be, is one message.
  CHECK(test.link.post(vb::write(test.memory.first(101), fabricated::peer_region()))
            .failed_with(errc::message_too_long));
  CHECK(test.link.post(vb::send(test.memory.first(100))));
  CHECK(test.link.post(vb::send(test.memory.first(101))).failed_with(errc::message_too_long));
  CHECK(test.link.post(vb::send(vb::pieces{test.memory.first(51), test.memory.first(50)}))
            .failed_with(errc::message_too_long));
}

TEST_CASE("FC-23 a long write is several messages and one completion, the immediate on the last") {
  workbench<> test{short_messages};
  const fabricated::anywhere peer = fabricated::peer_region();
  REQUIRE(test.link.post(vb::write_with_immediate(test.memory.first(250), peer, 0x1234)
                             .divided()
                             .token(9)
                             .solicited()));
  REQUIRE(test.sends().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& each = test.sends()[i];
    const bool last = i == 2;
    CHECK(each.request.opcode == (last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE));
    CHECK(each.is_signaled() == last);
    CHECK(((each.request.send_flags & IBV_SEND_SOLICITED) != 0) == last);
    CHECK(each.request.wr.rdma.remote_addr == peer.address() + 100 * i);
    CHECK(each.pieces[0].addr == reinterpret_cast<std::uintptr_t>(test.memory.data() + 100 * i));
    CHECK(test.send_id(i).what() == (last ? operation::write_with_immediate : operation::part));
    CHECK(test.send_id(i).position() == i);
  }
  CHECK(ntohl(test.sends()[2].request.imm_data) == 0x1234);
  test.adapter.complete_sends(test.link.native());
  told seen;
  seen.poll(test);
  CHECK(seen.done == std::vector<std::uint32_t>{9});
  CHECK(seen.retired == 3);
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("FC-23 long reads of several pieces, fenced, in a chain") {
  workbench<> test{short_messages};
  const fabricated::anywhere peer = fabricated::peer_region();
  REQUIRE(test.link.post(
      vb::write(test.memory.first(10), peer).token(1),
      vb::read(vb::pieces{test.memory.first(150), test.memory.subspan(1000, 20)}, peer)
          .fenced()
          .divided()
          .token(2),
      vb::send(test.memory.first(30)).token(3)));
  CHECK(lengths(test) == std::vector<std::uint64_t>{10, 100, 50, 20, 30});
  CHECK(test.sends()[1].request.opcode == IBV_WR_RDMA_READ);
  CHECK((test.sends()[1].request.send_flags & IBV_SEND_FENCE) != 0);
  CHECK(test.sends()[3].request.wr.rdma.remote_addr == peer.address() + 150);
  CHECK((test.sends()[4].request.send_flags & IBV_SEND_FENCE) == 0);
  test.adapter.complete_sends(test.link.native());
  told seen;
  seen.poll(test);
  CHECK(seen.done == std::vector<std::uint32_t>{1, 2, 3});
}

TEST_CASE("FC-24 what can never fit is refused, what does not fit now would block") {
  workbench<> test{{.send_depth = 4, .max_message = 100}};
  const fabricated::anywhere peer = fabricated::peer_region();
  CHECK(test.link.post(vb::write(test.memory.first(401), peer).divided())
            .failed_with(errc::capacity));
  CHECK(test.link
            .post(vb::write(test.memory.first(101), fabricated::peer_region().first(100)).divided())
            .failed_with(errc::outside_region));
  CHECK(test.sends().empty());
  REQUIRE(test.link.post(vb::write(test.memory.first(10), peer)));
  const vb::posted later = test.link.post(vb::write(test.memory.first(400), peer).divided());
  CHECK(later.would_block());
  CHECK(later.count() == 0);
  test.adapter.complete_sends(test.link.native());
  test.drain();
  CHECK(test.link.post(vb::write(test.memory.first(400), peer).divided()));
  CHECK(test.sends().size() == 5);
  test.adapter.complete_sends(test.link.native());
  test.drain();
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("FC-24 the provider refuses a message of a long write: what entered is retired later") {
  workbench<> test{short_messages};
  const fabricated::anywhere peer = fabricated::peer_region();
  test.behind().sends.limit = 2;
  const vb::posted part =
      test.link.post(vb::write(test.memory.first(10), peer).token(1),
                     vb::write(test.memory.first(250), peer).divided().token(2));
  CHECK(part.would_block());
  CHECK(part.count() == 1);
  CHECK(test.link.state->unsignaled != 0);  // which a marker of wait() looks for
  test.adapter.complete_sends(test.link.native());
  told seen;
  seen.poll(test);
  CHECK(seen.done == std::vector<std::uint32_t>{1});
  test.behind().sends.limit = 16;
  REQUIRE(test.link.post(vb::write(test.memory.first(250), peer).divided().token(3)));
  test.adapter.complete_sends(test.link.native());
  seen.poll(test);
  CHECK(seen.done == std::vector<std::uint32_t>{1, 3});
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("FC-23 a failing message of a long write is told once, by the write") {
  workbench<> test{short_messages};
  const fabricated::anywhere peer = fabricated::peer_region();
  REQUIRE(test.link.post(vb::receive(test.memory.first(8)).token(5)));
  REQUIRE(test.link.post(vb::write(test.memory.first(250), peer).divided().token(2),
                         vb::send(test.memory.first(8)).token(3)));
  test.adapter.fail_send(test.link.native(), IBV_WC_REM_ACCESS_ERR, 77);
  told seen;
  seen.poll(test);
  std::uint32_t breaks = 0;
  std::uint32_t of_write = 0;
  for (const vb::failed& each : seen.failures) {
    CHECK(each.what() != operation::part);
    if (each.breaks_connection()) ++breaks;
    if (each.token() != 2) continue;
    ++of_write;
    CHECK(each.what() == operation::write);
    CHECK(each.status() == vb::status::remote_access);
    CHECK(each.breaks_connection());
  }
  CHECK(of_write == 1);
  CHECK(breaks == 1);
  CHECK(seen.failures.size() == 3);
  CHECK(test.link.state->failure == vb::status::remote_access);
  CHECK(test.link.state->sends.outstanding() == 0);
  CHECK(test.link.post(vb::send(test.memory.first(8))).failed_with(errc::broken));
}

TEMPLATE_TEST_CASE("FC-01 long writes keep the count of what is unsignaled", "",
                   vb::signaling::one_in<4>, vb::signaling::per_operation) {
  workbench<TestType> test{short_messages};
  const fabricated::anywhere peer = fabricated::peer_region();
  for (int round = 0; round < 50; ++round) {
    const auto request = vb::write(test.memory.first(250), peer).divided();
    vb::posted result;
    if constexpr (TestType::by_request) {
      result = test.link.post(request.unsignaled());
    } else {
      result = test.link.post(request);
    }
    if (!result) REQUIRE(result.would_block());
    test.adapter.complete_sends(test.link.native());
    test.drain();
  }
  CHECK(test.sends().size() > 50);
}
