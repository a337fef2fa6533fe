// SPDX-License-Identifier: BSL-1.0
#include <verbena/connection/endpoint.hpp>
#include <verbena/policy/errors/returning.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;

namespace {

struct host {
  fabricated::device adapter;
  vb::verbs::device opened = adapter.open();
  vb::verbs::protection_domain domain = vb::verbs::protection_domain::create(opened).value();

  auto make(const vb::options& asked) {
    return vb::endpoint<vb::errors::returning>::open(domain, asked);
  }
};

}  // namespace

TEST_CASE("FC-06 inline bytes asked for are granted or refused by name") {
  host on;
  on.adapter.inline_limit = 100;
  CHECK(on.make({.inline_bytes = 100}).value().granted().max_inline_data >= 100);
  CHECK_FALSE(on.make({.inline_bytes = 101}).has_value());
  on.adapter.grant = [](ibv_qp_cap& caps) { caps.max_inline_data = 0; };
  const auto refused = on.make({.inline_bytes = 16});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::capacity);
  CHECK(mentions(refused.error(), "inline_bytes 16"));
}

TEST_CASE("FC-06 with capacity::at_most less is tried until the device takes it") {
  host on;
  on.adapter.inline_limit = 100;
  const auto made = on.make({.inline_bytes = 512, .capacity = vb::capacity::at_most});
  CHECK(made.value().granted().max_inline_data == 64);
  on.adapter.grant = [](ibv_qp_cap& caps) { caps.max_inline_data = 0; };
  CHECK(on.make({.inline_bytes = 16, .capacity = vb::capacity::at_most}).has_value());
}

TEST_CASE("FC-06 without asking there is what the device takes of 28 bytes, or nothing") {
  host on;
  CHECK(on.make({}).value().granted().max_inline_data == 28);
  on.adapter.inline_limit = 8;
  CHECK(on.make({}).value().granted().max_inline_data == 7);
  on.adapter.inline_limit = 0;
  CHECK(on.make({}).value().granted().max_inline_data == 0);
}
