// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include <verbena/connection/post_on.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;
using vb::errc;

namespace {

std::string text_of(const fabricated::posted_send& request) {
  return {reinterpret_cast<const char*>(request.inlined.data()), request.inlined.size()};
}

}  // namespace

TEST_CASE("FC-27 a fence stands on the request that waits, and on no other") {
  workbench<vb::signaling::per_operation> test;
  const auto peer = fabricated::peer_region();
  CHECK(test.link.post(vb::read(test.memory.first(8), peer),
                       vb::write(test.memory.first(8), peer).fenced().unsignaled().token(3)));
  CHECK(test.sends()[0].request.send_flags == IBV_SEND_SIGNALED);
  CHECK(test.sends()[1].request.send_flags == IBV_SEND_FENCE);
  CHECK(test.send_id(1).token() == 3);
}

TEST_CASE("a solicited send says so to the provider, and options add up") {
  workbench<> test;
  CHECK(test.link.post(test.message().solicited(), vb::send_with_immediate(1).solicited().fenced(),
                       test.message()));
  CHECK(test.sends()[0].request.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  CHECK(test.sends()[1].request.send_flags ==
        (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE));
  CHECK(test.sends()[2].request.send_flags == IBV_SEND_SIGNALED);
}

TEST_CASE("FC-06 registered memory goes inline where it fits the granted limit") {
  workbench<> test{{.inline_bytes = 16}};
  CHECK(test.link.post(
      test.message(16).inlined(), test.message(17).inlined(), test.message(16),
      vb::send(vb::pieces{test.memory.first(8), test.memory.subspan(8, 8)}).inlined(),
      vb::send(vb::pieces{test.memory.first(8), test.memory.subspan(8, 9)}).inlined()));
  const auto is_inline = [&](std::size_t at) {
    return (test.sends()[at].request.send_flags & IBV_SEND_INLINE) != 0;
  };
  CHECK(is_inline(0));
  CHECK_FALSE(is_inline(1));
  CHECK_FALSE(is_inline(2));
  CHECK(is_inline(3));
  CHECK_FALSE(is_inline(4));
}

TEST_CASE("FC-06 unregistered memory is the program's again when post returns") {
  workbench<> test{{.inline_bytes = 32}};
  const auto peer = fabricated::peer_region();
  std::uint64_t number = 7;
  std::string text = "four";
  CHECK(test.link.post(vb::write(vb::unregistered{number}, peer), vb::send(vb::unregistered{text}),
                       vb::send(vb::unregistered{std::array{'a', 'b'}}),
                       vb::send(vb::unregistered{"end"})));
  number = 0;
  text = "gone";
  std::uint64_t arrived = 0;
  REQUIRE(test.sends()[0].inlined.size() == 8);
  std::memcpy(&arrived, test.sends()[0].inlined.data(), 8);
  CHECK(arrived == 7);
  CHECK(text_of(test.sends()[1]) == "four");
  CHECK(text_of(test.sends()[2]) == "ab");
  CHECK(text_of(test.sends()[3]) == std::string{"end\0", 4});
}

TEST_CASE("FC-03 FC-06 unregistered memory beyond the limit is refused before the provider") {
  workbench<> test{{.inline_bytes = 8}};
  const std::array<char, 9> nine{};
  CHECK(test.link.post(vb::send(vb::unregistered{std::span{nine}.first(8)})));
  const auto refused = test.link.post(vb::send(vb::unregistered{nine}));
  CHECK(refused.error() == errc::inline_too_long);
  CHECK(mentions(vb::post_error(*test.link.state, refused).message(),
                 "of unregistered memory 8 bytes can be sent at a time"));
  CHECK(test.link.post(vb::send(vb::unregistered{std::span<const char>{}})).error() ==
        errc::empty_piece);
  CHECK(test.link
            .post(vb::write(vb::unregistered{std::uint64_t{1}}, fabricated::peer_region().first(7)))
            .error() == errc::outside_region);
  CHECK(test.adapter.count(call::post_send) == 1);
}

TEST_CASE("FC-06 a queue pair that takes nothing inline sends registered memory alone") {
  workbench<> test;
  CHECK(test.link.post(test.message().inlined()));
  CHECK(test.sends()[0].request.send_flags == IBV_SEND_SIGNALED);
  CHECK(test.link.post(vb::send(vb::unregistered{std::uint64_t{1}})).error() ==
        errc::inline_too_long);
}

TEST_CASE("FC-41 a read with a fence is refused where the device fails at it") {
  workbench<> test{{.lacking = vb::feature::beyond_iwarp}};
  const auto peer = fabricated::peer_region();
  CHECK(test.link.post(vb::read(test.memory.first(8), peer).fenced()).error() ==
        errc::not_supported);
  CHECK(test.adapter.count(call::post_send) == 0);
  CHECK(test.link.post(vb::read(test.memory.first(8), peer),
                       vb::write(test.memory.first(8), peer).fenced()));
}
