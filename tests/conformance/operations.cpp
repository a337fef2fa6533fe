// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using links::no_failure;
using links::soon;

namespace {

/// RC as it can be connected on every device, and UC.
using rc = vb::connection<vb::transport::rc, vb::setup::cm>;
using uc = vb::connection<vb::transport::uc>;

/// Leaves where the device does not have the connection's transport, with its reason.
#define VERBENA_TRANSPORT_OR_SKIP(device, Link)                                          \
  if (vb::policies<vb::transport::uc>::transport::queue_pair_type ==                     \
          Link::policies::transport::queue_pair_type &&                                  \
      (device).domain().device().is_iwarp()) {                                           \
    const auto refused =                                                                 \
        vb::endpoint<vb::transport::uc, vb::errors::returning>::open((device).domain()); \
    REQUIRE_FALSE(refused.has_value());                                                  \
    REQUIRE(refused.error() == vb::errc::not_supported);                                 \
    REQUIRE(mentions(refused.error(), (device).name()));                                 \
    VERBENA_SKIP(refused.error().message());                                             \
  }

/// Words of which no two are alike.
void fill(std::span<std::uint64_t> words, std::uint64_t first) {
  std::iota(words.begin(), words.end(), first);
}
bool same(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

}  // namespace

TEMPLATE_TEST_CASE("operations: a write and the send after it", "[operations]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_TRANSPORT_OR_SKIP(device, TestType);
  auto out = device.allocate<std::uint64_t, vb::source>(600);
  auto shown = device.allocate<std::uint64_t, vb::remote_writable>(600);
  auto in = device.allocate<std::uint64_t, vb::sink>(4);
  fill(out.elements(), 1);
  auto [here, there] = links::connect<TestType>(device, {}, shown);
  REQUIRE(there.post(vb::receive(in).token(5)));
  const auto to = here.template peer<std::uint64_t>();
  REQUIRE(here.post(vb::write(out, to).token(1), vb::send(out.first(3)).token(2)));
  std::uint32_t writes = 0;
  std::uint32_t sends = 0;
  here.wait(soon, vb::on([&](vb::completed<vb::write> done) { writes += done.token(); },
                         [&](vb::completed<vb::send> done) { sends += done.token(); },
                         [](const vb::failed& f) { no_failure(f); }));
  CHECK(writes == 1);
  CHECK(sends == 2);
  std::uint32_t received = 0;
  there.wait(soon, vb::on(
                       [&](vb::completed<vb::receive> done) {
                         received = done.size();
                         CHECK(done.token() == 5);
                         CHECK(done.bytes().data() == reinterpret_cast<std::byte*>(in.data()));
                       },
                       [](const vb::failed& f) { no_failure(f); }));
  CHECK(received == 24);
  CHECK(same(in.elements().first(3), out.elements().first(3)));
  CHECK(same(shown.elements(), out.elements()));
}
