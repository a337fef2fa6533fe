// SPDX-License-Identifier: BSL-1.0
// needs exceptions
// posting::builder as programs use it; builder.cpp has ibv_wr_* by hand.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"
#include "fixture/words.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using links::fill;
using links::no_failure;
using links::same;
using links::soon;

namespace {

using rc = vb::connection<vb::posting::builder, vb::setup::cm>;
using uc = vb::connection<vb::posting::builder, vb::transport::uc>;

/// Leaves where the device has no ibv_wr_*, once making an endpoint has said so.
template <class Link>
std::optional<vb::error> missing(const vb::device& device) {
  using policies = typename Link::policies;
  using endpoint =
      vb::endpoint<typename policies::transport, typename policies::posting, vb::errors::returning>;
  auto made = endpoint::open(device);
  if (made) return {};
  REQUIRE(made.error() == vb::errc::not_supported);
  REQUIRE(mentions(made.error(), device.name()));
  return made.error();
}

#define VERBENA_BUILDER_OR_SKIP(device, Link) \
  if (const auto why = missing<Link>(device)) VERBENA_SKIP(why->message())

const auto completes = vb::on([](const vb::failed& f) { no_failure(f); });

}  // namespace

TEMPLATE_TEST_CASE("posting::builder: sends, writes and immediates in one chain", "[builder]", rc,
                   uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_BUILDER_OR_SKIP(device, TestType);
  auto out = device.allocate<std::uint64_t, vb::source>(600);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(1200);
  auto in = device.allocate<std::uint64_t, vb::sink>(1800);
  fill(out.elements(), 1);
  auto both = links::connect<TestType>(device, {.inline_bytes = 16}, shown);
  const auto to = both.here.template peer<std::uint64_t>();
  REQUIRE(both.there.post(vb::receive(in.first(600)), vb::receive(in.subspan(600, 600)),
                          vb::receive(), vb::receive(), vb::receive(in.subspan(1200, 2)),
                          vb::receive(in.subspan(1202, 3))));
  std::array<std::uint64_t, 2> numbers{7, 8};
  REQUIRE(both.here.post(vb::write(out, to).token(1), vb::send(out).token(2),
                         vb::send_with_immediate(out, 0x89AB'CDEF), vb::send_with_immediate(5),
                         vb::write_with_immediate(out.first(3), to.subspan(600), 6),
                         vb::send(vb::unregistered{numbers}),
                         vb::send(out.first(3)).solicited().inlined()));
  numbers = {};
  std::uint32_t tokens = 0;
  both.here.wait(soon, vb::on([&](vb::completed<vb::write> done) { tokens += done.token(); },
                              [&](vb::completed<vb::send> done) { tokens += done.token(); },
                              [](const vb::failed& f) { no_failure(f); }));
  CHECK(tokens == 3);
  std::vector<std::uint32_t> sizes;
  std::vector<std::optional<std::uint32_t>> immediates;
  both.there.wait(soon, vb::on(
                            [&](vb::completed<vb::receive> done) {
                              sizes.push_back(done.size());
                              immediates.push_back(done.immediate());
                            },
                            [](const vb::failed& f) { no_failure(f); }));
  CHECK(sizes == std::vector<std::uint32_t>{4800, 4800, 0, 24, 16, 24});
  CHECK(immediates == std::vector<std::optional<std::uint32_t>>{std::nullopt, 0x89AB'CDEF, 5U, 6U,
                                                                std::nullopt, std::nullopt});
  CHECK(same(in.elements().first(600), out.elements()));
  CHECK(same(in.elements().subspan(600, 600), out.elements()));
  CHECK(same(in.elements().subspan(1200, 2), std::array<std::uint64_t, 2>{7, 8}));
  CHECK(same(in.elements().subspan(1202, 3), out.elements().first(3)));
  CHECK(same(shown.elements().first(600), out.elements()));
  CHECK(same(shown.elements().subspan(600, 3), out.elements().first(3)));
}

TEST_CASE("posting::builder: reads, fences and atomics in one chain", "[builder]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_BUILDER_OR_SKIP(device, rc);
  auto old = device.allocate<std::uint64_t, vb::sink>(600);
  auto fresh = device.allocate<std::uint64_t, vb::source>(600);
  auto shown = device.allocate<std::uint64_t, vb::remote_readable, vb::remote_writable>(600);
  auto counters = device.allocate<std::uint64_t, vb::remote_atomic>(2);
  fill(shown.elements(), 1);
  fill(fresh.elements(), 1000);
  const std::vector<std::uint64_t> before(shown.elements().begin(), shown.elements().end());
  counters.data()[0] = 5;
  counters.data()[1] = 6;
  auto results = device.allocate<std::uint64_t, vb::sink>(2);
  auto both = links::connect<rc>(device, {}, shown, counters);
  const auto all = both.here.peer<std::uint64_t, vb::remote_atomic>(1);
  REQUIRE(both.here.post(
      vb::read(old, both.here.peer<std::uint64_t, vb::remote_readable>()),
      vb::write(fresh, both.here.peer<std::uint64_t, vb::remote_writable>()).fenced(),
      vb::compare_and_swap(results.first(1), all, 5, 50),
      vb::fetch_and_add(results.last(1), all.subspan(1), 3)));
  std::vector<std::uint64_t> values;
  both.here.wait(
      soon,
      vb::on([&](vb::completed<vb::compare_and_swap> done) { values.push_back(done.old_value()); },
             [&](vb::completed<vb::fetch_and_add> done) { values.push_back(done.old_value()); },
             [](const vb::failed& f) { no_failure(f); }));
  CHECK(values == std::vector<std::uint64_t>{5, 6});
  CHECK(counters.data()[0] == 50);
  CHECK(counters.data()[1] == 9);
  CHECK(same(old.elements(), before));
  REQUIRE(both.here.post(vb::read(old, both.here.peer<std::uint64_t, vb::remote_readable>())));
  both.here.wait(soon, completes);
  CHECK(same(old.elements(), fresh.elements()));
}

TEST_CASE("posting::builder: pieces of unequal length arrive whole or are refused", "[builder]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_BUILDER_OR_SKIP(device, rc);
  auto out = device.allocate<std::uint64_t, vb::source>(300);
  auto in = device.allocate<std::uint64_t, vb::sink>(300);
  fill(out.elements(), 1);
  auto both = links::connect<rc>(device, {.send_pieces = 3, .inline_bytes = 32});
  REQUIRE(both.there.post(vb::receive(in), vb::receive(in.last(4))));
  const vb::pieces unequal{out.first(1), out.subspan(100, 200), out.subspan(50, 17)};
  const vb::pieces small{out.first(1), out.last(3)};
  if (both.here.granted().max_send_sge == 1) {
    const auto refused = links::error_of([&] { (void)both.here.post(vb::send(unequal)); });
    CHECK(refused == vb::errc::too_many_pieces);
    CHECK(links::error_of([&] { (void)both.here.post(vb::send(small).inlined()); }) ==
          vb::errc::too_many_pieces);
    REQUIRE(both.here.post(vb::send(out.first(1)), vb::send(out.first(1))));
    both.there.wait(soon, completes);
    return;
  }
  REQUIRE(both.here.post(vb::send(unequal), vb::send(small).inlined()));
  std::vector<std::uint32_t> sizes;
  both.there.wait(soon,
                  vb::on([&](vb::completed<vb::receive> done) { sizes.push_back(done.size()); },
                         [](const vb::failed& f) { no_failure(f); }));
  CHECK(sizes == std::vector<std::uint32_t>{218 * 8, 32});
  CHECK(in.elements()[0] == 1);
  CHECK(same(in.elements().subspan(1, 200), out.elements().subspan(100, 200)));
  CHECK(same(in.elements().subspan(201, 17), out.elements().subspan(50, 17)));
  CHECK(in.elements()[296] == 1);
  CHECK(same(in.elements().last(3), out.elements().last(3)));
}

TEST_CASE("posting::builder: unsignaled requests are retired, queues fill and empty", "[builder]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_BUILDER_OR_SKIP(device, rc);
  using counting = vb::connection<vb::posting::builder, vb::setup::cm, vb::signaling::one_in<16>>;
  auto out = device.allocate<std::uint64_t, vb::source>(8);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(8);
  auto both = links::connect<counting>(device, {.send_depth = 16}, shown);
  const auto to = both.here.peer<std::uint64_t>();
  std::uint64_t posted = 0;
  while (posted < 1000) {
    out.data()[0] = posted;
    if (both.here.post(vb::write(out, to), vb::write(out, to))) {
      ++posted;
    } else {
      both.here.completions().poll(completes);
    }
  }
  // With less than a window posted, a marker by ibv_post_send is what the wait waits for.
  while (!both.here.post(vb::write(out, to))) both.here.completions().poll(completes);
  both.here.wait(soon, completes);
  CHECK(shown.data()[0] == 999);
}
