// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <cstdint>
#include <limits>
#include <vector>

#include <verbena/chain/post.hpp>
#include <verbena/connection/handlers.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/accounting/unchecked.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;
using vb::errc;

TEST_CASE("a chain reaches the provider as it was written, in one call") {
  workbench<> test;
  const fabricated::anywhere peer = fabricated::peer_region().subspan(64);
  const vb::posted done = test.link.post(
      vb::write(test.memory.first(100), peer).token(1),
      vb::read(test.memory.subspan(200, 10), peer.subspan(5)).token(2),
      vb::send(vb::pieces{test.memory.first(3), test.memory.last(4)}).token(0xff'ffff));
  CHECK(done);
  CHECK(done.count() == 3);
  CHECK_FALSE(done.error());
  CHECK(test.adapter.count(call::post_send) == 1);

  REQUIRE(test.sends().size() == 3);
  const auto& write = test.sends()[0];
  CHECK(write.request.opcode == IBV_WR_RDMA_WRITE);
  CHECK(write.request.send_flags == IBV_SEND_SIGNALED);
  CHECK(write.request.wr.rdma.remote_addr == peer.address());
  CHECK(write.request.wr.rdma.rkey == 0x9999);
  REQUIRE(write.pieces.size() == 1);
  CHECK(write.pieces[0].addr == reinterpret_cast<std::uintptr_t>(test.memory.data()));
  CHECK(write.pieces[0].length == 100);
  CHECK(write.pieces[0].lkey == test.memory.native_handle()->lkey);

  const auto& read = test.sends()[1];
  CHECK(read.request.opcode == IBV_WR_RDMA_READ);
  CHECK(read.request.wr.rdma.remote_addr == peer.address() + 5);
  CHECK(read.pieces[0].addr == reinterpret_cast<std::uintptr_t>(test.memory.data() + 200));
  CHECK(read.pieces[0].length == 10);

  const auto& send = test.sends()[2];
  CHECK(send.request.opcode == IBV_WR_SEND);
  REQUIRE(send.pieces.size() == 2);
  CHECK(send.pieces[0].length == 3);
  CHECK(send.pieces[1].length == 4);
  CHECK(send.pieces[1].addr == reinterpret_cast<std::uintptr_t>(test.memory.data() + 4092));
  CHECK(test.send_id(2).token() == 0xff'ffff);
}

TEST_CASE("what a wr_id says is what was posted") {
  workbench<> test;
  CHECK(test.link.post(test.message().token(7)));
  CHECK(test.link.post(vb::write(test.memory, fabricated::peer_region()).token(8)));
  for (std::uint16_t at = 0; at < 2; ++at) {
    const vb::work_request_id id = test.send_id(at);
    CHECK(id.position() == at);
    CHECK(id.owner() == test.link.state->owner);
    CHECK(id.token() == 7U + at);
  }
  CHECK(test.send_id(0).what() == vb::operation::send);
  CHECK(test.send_id(1).what() == vb::operation::write);
}

TEST_CASE("a chain of receives reaches the provider as it was written") {
  workbench<> test;
  CHECK(test.link.post(
      vb::receive(test.memory.first(10)).token(3),
      vb::receive(vb::pieces{test.memory.subspan(10, 20), test.memory.subspan(30, 5)})));
  REQUIRE(test.receives().size() == 2);
  CHECK(test.receives()[0].pieces[0].length == 10);
  CHECK(vb::work_request_id{test.receives()[0].id}.token() == 3);
  CHECK(vb::work_request_id{test.receives()[0].id}.what() == vb::operation::receive);
  REQUIRE(test.receives()[1].pieces.size() == 2);
  CHECK(test.receives()[1].pieces[1].length == 5);
  CHECK(test.adapter.count(call::post_recv) == 1);
  CHECK(test.link.state->receives.posted == 2);
  CHECK(test.link.state->sends.posted == 0);
}

TEST_CASE("FC-03 a full queue is found before the provider is called, and is no failure") {
  workbench<> test{{.send_depth = 4}};
  for (int i = 0; i < 4; ++i) CHECK(test.link.post(test.message()));
  const vb::posted full = test.link.post(test.message());
  CHECK_FALSE(full);
  CHECK(full.would_block());
  CHECK(full.count() == 0);
  CHECK(full.error() == errc::would_block);
  CHECK(test.adapter.count(call::post_send) == 4);

  // A slot is free when its completion has been polled, not before.
  test.adapter.complete_sends(test.link.native(), 1);
  CHECK(test.link.post(test.message()).would_block());
  CHECK(test.drain() == 1);
  CHECK(test.link.post(test.message()));
  CHECK(test.link.post(test.message()).would_block());
}

TEST_CASE("FC-03 a full receive queue is found before the provider is called") {
  workbench<> test{{.receive_depth = 2}};
  CHECK(test.link.post(vb::receive(test.memory), vb::receive(test.memory)));
  CHECK(test.link.post(vb::receive(test.memory)).would_block());
  CHECK(test.adapter.count(call::post_recv) == 1);
  test.adapter.complete_receive(test.link.native(), 5);
  CHECK(test.drain() == 1);
  CHECK(test.link.post(vb::receive(test.memory)));
}

TEST_CASE("a chain enters whole or not at all when there is no room for it") {
  workbench<> test{{.send_depth = 4}};
  CHECK(test.link.post(test.message(), test.message(), test.message()));
  CHECK(test.link.post(test.message(), test.message()).would_block());
  CHECK(test.sends().size() == 3);
  CHECK(test.link.post(test.message()));
}

TEST_CASE("FC-24 a chain that is longer than the queue is refused, not queued for ever") {
  workbench<> test{{.send_depth = 2, .receive_depth = 2}};
  const vb::posted sends = test.link.post(test.message(), test.message(), test.message());
  CHECK(sends.error() == errc::capacity);
  CHECK_FALSE(sends.would_block());
  const vb::receive receive{test.memory};
  CHECK(test.link.post(receive, receive, receive).error() == errc::capacity);
  CHECK(test.adapter.count(call::post_send) + test.adapter.count(call::post_recv) == 0);
}

TEST_CASE("FC-19 memory of another domain is refused before the provider is called") {
  workbench<> test;
  const auto other = vb::verbs::protection_domain::create(test.opened).value();
  const auto foreign = fabricated::memory(other);
  CHECK(test.link.post(vb::send(foreign)).error() == errc::foreign_domain);
  CHECK(test.link.post(vb::receive(foreign)).error() == errc::foreign_domain);
  CHECK(test.link.post(vb::send(vb::pieces{test.memory, foreign})).error() == errc::foreign_domain);
  CHECK(test.link.post(test.message(), vb::send(foreign)).error() == errc::foreign_domain);
  CHECK(test.adapter.count(call::post_send) + test.adapter.count(call::post_recv) == 0);
}

TEST_CASE("FC-19 memory that is no longer registered is refused") {
  workbench<> test;
  auto memory = fabricated::memory(test.domain);
  REQUIRE(memory.close().has_value());
  CHECK_FALSE(test.link.post(vb::send(memory)));
  CHECK(test.adapter.count(call::post_send) == 0);
}

TEST_CASE("FC-23 a message is at most as long as the connection carries") {
  workbench<> test{{.max_message = 1000}};
  CHECK(test.link.post(test.message(999)));
  CHECK(test.link.post(test.message(1000)));
  CHECK(test.link.post(test.message(1001)).error() == errc::message_too_long);
  // A sum over pieces counts, each of which would pass.
  CHECK(test.link.post(vb::send(vb::pieces{test.memory.first(600), test.memory.first(400)})));
  CHECK(test.link.post(vb::send(vb::pieces{test.memory.first(600), test.memory.first(401)}))
            .error() == errc::message_too_long);
  CHECK(test.link.post(vb::write(test.memory.first(1001), fabricated::peer_region())).error() ==
        errc::message_too_long);
  CHECK(test.sends().size() == 3);
  // What the peer can send at a time does not bound the memory offered for it.
  CHECK(test.link.post(vb::receive(test.memory.first(1001))));
}

TEST_CASE("FC-23 lengths are summed in 64 bits") {
  workbench<> test;
  // Views that no memory backs: they must be refused before anybody reads them.
  constexpr std::size_t huge = (std::size_t{1} << 32) + 8;
  const vb::view<char, vb::rights::local_write> wrapping{
      {test.memory.data(), huge}, vb::lkey{1}, test.domain.id()};
  CHECK(test.link.post(vb::send(wrapping)).error() == errc::message_too_long);
  const auto half = wrapping.first(std::size_t{1} << 30);
  CHECK(test.link.post(vb::send(vb::pieces{half, half, half, half})).error() ==
        errc::message_too_long);
  const vb::view<char, vb::rights::local_write> everything{
      {test.memory.data(), std::numeric_limits<std::size_t>::max()}, vb::lkey{1}, test.domain.id()};
  CHECK(test.link.post(vb::send(vb::pieces{everything, everything})).error() ==
        errc::message_too_long);
  CHECK(test.link.post(vb::receive(everything)).error() == errc::message_too_long);
  CHECK(test.adapter.count(call::post_send) + test.adapter.count(call::post_recv) == 0);
}

TEST_CASE("a piece of no bytes is refused: adapters read it as 2^31") {
  workbench<> test;
  CHECK(test.link.post(vb::send(test.memory.first(0))).error() == errc::empty_piece);
  CHECK(test.link.post(vb::receive(test.memory.first(0))).error() == errc::empty_piece);
  CHECK(test.link.post(vb::send(vb::pieces{test.memory.first(0), test.memory.first(1)})).error() ==
        errc::empty_piece);
  CHECK(test.adapter.count(call::post_send) + test.adapter.count(call::post_recv) == 0);
}

TEST_CASE("a transfer past the end of the peer's region is refused") {
  workbench<> test;
  const auto peer = fabricated::peer_region(64);
  CHECK(test.link.post(vb::write(test.memory.first(64), peer)));
  CHECK(test.link.post(vb::write(test.memory.first(65), peer)).error() == errc::outside_region);
  CHECK(test.link.post(vb::read(test.memory.first(65), peer)).error() == errc::outside_region);
  CHECK(test.link.post(vb::write(test.memory.first(2), peer.subspan(63))).error() ==
        errc::outside_region);
  CHECK(test.link.post(vb::write(vb::pieces{test.memory.first(40), test.memory.first(25)}, peer))
            .error() == errc::outside_region);
  CHECK(test.sends().size() == 1);
}

TEST_CASE("FC-02 of a partly accepted chain exactly the rest is posted again") {
  fabricated::link_options options{.send_depth = 16};
  workbench<> test{options};
  test.adapter.out_of_room = GENERATE(ENOMEM, -ENOMEM);
  auto& behind = test.behind();
  behind.sends.limit = 5;  // less than the device said
  CHECK(test.link.post(test.message().token(1), test.message().token(2)));
  const vb::posted part =
      test.link.post(test.message().token(3), test.message().token(4), test.message().token(5),
                     test.message().token(6), test.message().token(7));
  CHECK_FALSE(part);
  CHECK(part.count() == 3);
  CHECK(part.would_block());
  CHECK(test.link.state->sends.outstanding() == 5);

  test.adapter.complete_sends(test.link.native());
  std::vector<std::uint32_t> completed;
  const auto note = vb::on([&](vb::completed<vb::send> done) { completed.push_back(done.token()); },
                           [](const vb::failed&) {});
  while (test.link.queue->poll(note)) {
  }
  CHECK(test.link.post(test.message().token(6), test.message().token(7)));
  test.adapter.complete_sends(test.link.native());
  while (test.link.queue->poll(note)) {
  }
  CHECK(completed == std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7});
  CHECK(test.sends().size() == 7);
  CHECK(test.link.state->sends.outstanding() == 0);
}

TEST_CASE("FC-02 a provider that returns 0 and names a request has refused it") {
  workbench<> test;
  test.adapter.out_of_room = 0;
  test.behind().sends.limit = 2;
  const vb::posted part = test.link.post(test.message(), test.message(), test.message());
  CHECK_FALSE(part);
  CHECK(part.count() == 2);
  CHECK(part.error() == std::errc::invalid_argument);
  CHECK(test.link.state->sends.outstanding() == 2);

  test.behind().receives.limit = 1;
  const vb::receive receive{test.memory};
  const vb::posted received = test.link.post(receive, receive);
  CHECK_FALSE(received);
  CHECK(received.count() == 1);
  CHECK(test.link.state->receives.outstanding() == 1);
}

TEST_CASE("FC-02 of a partly accepted chain of receives exactly the rest is posted again") {
  workbench<> test;
  test.adapter.out_of_room = GENERATE(ENOMEM, -ENOMEM);
  test.behind().receives.limit = 2;
  const auto at = [&](std::size_t offset) { return vb::receive(test.memory.subspan(offset, 8)); };
  const vb::posted part = test.link.post(at(0), at(8), at(16));
  CHECK(part.count() == 2);
  CHECK(part.would_block());
  test.adapter.complete_receive(test.link.native(), 4);

  std::vector<const std::byte*> data;
  const auto note =
      vb::on([&](vb::completed<vb::receive> done) { data.push_back(done.bytes().data()); },
             [](const vb::failed&) {});
  CHECK(test.link.queue->poll(note).count() == 1);
  CHECK(test.link.post(at(16)));
  while (test.adapter.complete_receive(test.link.native(), 4)) {
  }
  CHECK(test.link.queue->poll(note).count() == 2);
  const auto* first = reinterpret_cast<const std::byte*>(test.memory.data());
  CHECK(data == std::vector{first, first + 8, first + 16});
}

TEST_CASE("FC-02 a chain of which nothing entered leaves the books as they were") {
  workbench<> test;
  test.adapter.refuse.add(call::post_send, GENERATE(EINVAL, -EINVAL));
  const vb::posted none = test.link.post(test.message(), test.message());
  CHECK_FALSE(none);
  CHECK(none.count() == 0);
  CHECK(none.error() == std::errc::invalid_argument);
  CHECK_FALSE(none.would_block());
  CHECK(test.link.state->sends.posted == 0);
  CHECK(test.link.post(test.message(), test.message()));
  CHECK(test.send_id(0).position() == 0);
}

TEST_CASE("FC-05 a provider that is full earlier than it said holds the caller back") {
  workbench<> test;
  test.adapter.refuse.add(call::post_send, GENERATE(ENOMEM, -ENOMEM), 1, 1);
  CHECK(test.link.post(test.message()));
  const vb::posted early = test.link.post(test.message());
  CHECK(early.would_block());
  CHECK(early.count() == 0);
  CHECK(test.link.state->sends.outstanding() == 1);
  CHECK(test.link.post(test.message()));
}

TEST_CASE("FC-05 out of memory with nothing outstanding is a failure: waiting would not help") {
  workbench<> test;
  test.adapter.refuse.add(call::post_send, ENOMEM);
  const vb::posted refused = test.link.post(test.message());
  CHECK_FALSE(refused.would_block());
  CHECK(refused.error() == std::errc::not_enough_memory);
}

TEST_CASE("FC-05 what an earlier call left in errno says nothing of a refused post") {
  workbench<> test;
  CHECK(test.link.post(test.message()));
  test.adapter.refuse.add(call::post_send, -1);
  test.adapter.refuse.add(call::post_recv, -1);
  errno = ENOMEM;
  const vb::posted refused = test.link.post(test.message());
  CHECK_FALSE(refused.would_block());
  CHECK(refused.error() == std::errc::operation_not_permitted);
  errno = ENOMEM;
  CHECK(test.link.post(vb::receive(test.memory)).error() == std::errc::operation_not_permitted);
}

TEST_CASE("FC-04 after a failure nothing is posted and the provider is not called") {
  workbench<> test;
  CHECK(test.link.post(test.message()));
  test.adapter.fail_send(test.link.native(), IBV_WC_RETRY_EXC_ERR);
  CHECK(test.drain() == 1);
  const vb::posted send = test.link.post(test.message());
  CHECK(send.error() == errc::broken);
  CHECK_FALSE(send.would_block());
  CHECK(test.link.post(vb::receive(test.memory)).error() == errc::broken);
  CHECK(test.adapter.count(call::post_send) == 1);
  CHECK(test.adapter.count(call::post_recv) == 0);
}

TEST_CASE("FC-01 a stream of unsignaled sends goes on for ever at every depth") {
  for (const std::uint32_t depth : {1U, 2U, 3U, 4U, 16U, 127U}) {
    INFO("depth " << depth);
    workbench<vb::signaling::per_operation> test{{.send_depth = depth}};
    auto& behind = test.behind();
    for (std::uint32_t sent = 0; sent < 5 * depth; ++sent) {
      while (!test.link.post(test.message().unsignaled())) {
        REQUIRE(test.adapter.complete_sends(test.link.native()) > 0);
        REQUIRE(test.drain() > 0);
      }
    }
    if (depth == 1) CHECK(behind.sends.posted.back().is_signaled());
  }
}

TEST_CASE("FC-01 positions wrap around without a slot lost") {
  workbench<vb::signaling::one_in<16>> test{{.send_depth = 64}};
  auto& behind = test.behind();
  for (std::uint32_t sent = 0; sent < 140'000; ++sent) {
    while (!test.link.post(test.message())) {
      REQUIRE(test.adapter.complete_sends(test.link.native()) > 0);
      REQUIRE(test.drain() > 0);
      behind.sends.posted.erase(
          behind.sends.posted.begin(),
          behind.sends.posted.begin() + static_cast<std::ptrdiff_t>(behind.sends.polled));
      behind.sends.completed -= behind.sends.polled;
      behind.sends.polled = 0;
    }
  }
  CHECK(test.link.state->sends.posted == 140'000);
}

TEST_CASE("FC-24 a chain that does not fit beside unsignaled requests is not put off for ever") {
  workbench<vb::signaling::one_in<16>> test{{.send_depth = 4}};
  CHECK(test.link.post(test.message()));  // unsignaled: nothing will ever retire it alone
  const auto four = [&] {
    return test.link.post(test.message(), test.message(), test.message(), test.message());
  };
  vb::posted outcome = four();
  for (int tries = 0; outcome.would_block() && tries < 3; ++tries) {
    test.adapter.complete_sends(test.link.native());
    test.drain();
    outcome = four();
  }
  CHECK_FALSE(outcome.would_block());
}

TEST_CASE("FC-01 a chain of which part was refused does not put the next signal off") {
  workbench<vb::signaling::one_in<16>> test{{.send_depth = 8}};  // one in four
  test.behind().sends.limit = 3;
  const vb::posted part = test.link.post(test.message(), test.message(), test.message(),
                                         test.message(), test.message());
  CHECK(part.count() == 3);
  test.behind().sends.limit = 8;
  CHECK(test.link.post(test.message()));
  CHECK(test.sends().back().is_signaled());
}

TEST_CASE("unchecked accounting counts positions all the same") {
  workbench<vb::accounting::unchecked> test;
  CHECK(test.link.post(test.message(), test.message()));
  CHECK(test.link.post(vb::receive(test.memory)));
  CHECK(test.link.state->sends.outstanding() == 2);
  CHECK(test.link.state->receives.outstanding() == 1);
  test.behind().sends.limit = 3;
  const vb::posted part = test.link.post(test.message(), test.message());
  CHECK(part.count() == 1);
  CHECK(part.would_block());
  test.adapter.complete_all(test.link.native());
  test.drain();
  CHECK(test.link.state->sends.outstanding() == 0);
  CHECK(test.link.state->receives.outstanding() == 0);
}

TEST_CASE("FC-18 a read fills no more pieces than the device's reads can") {
  workbench<> test{{.read_pieces = 1}};
  const auto read = [&](auto&& into) {
    return test.link.post(vb::read(into, fabricated::peer_region()));
  };
  CHECK(read(test.memory.first(3)));
  const vb::pieces two{test.memory.first(3), test.memory.last(4)};
  CHECK(read(two).error() == errc::too_many_pieces);
  CHECK(test.link.post(vb::write(two, fabricated::peer_region()), vb::send(two)));
  CHECK(test.sends().size() == 3);
}

TEST_CASE("FC-03 more pieces than were granted are refused before the provider sees them") {
  workbench<> test{{.send_pieces = 1, .receive_pieces = 2}};
  const vb::pieces two{test.memory.first(3), test.memory.last(4)};
  CHECK(test.link.post(vb::send(two)).error() == errc::too_many_pieces);
  CHECK(test.link.post(vb::write(two, fabricated::peer_region())).error() == errc::too_many_pieces);
  CHECK(test.link.post(vb::receive(two)));
  const vb::pieces three{test.memory.first(3), test.memory.last(4), test.memory.first(1)};
  CHECK(test.link.post(vb::receive(three)).error() == errc::too_many_pieces);
  CHECK(test.adapter.count(call::post_send) == 0);
}

TEST_CASE("a read is refused where the peers agreed on none: it would never be done") {
  workbench<> test{{.read_pieces = 0}};
  const vb::posted refused = test.link.post(vb::read(test.memory, fabricated::peer_region()));
  CHECK(refused.error() == errc::not_supported);
  CHECK(test.link.post(vb::write(test.memory.first(1), fabricated::peer_region())));
}
