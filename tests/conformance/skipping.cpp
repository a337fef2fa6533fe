// SPDX-License-Identifier: BSL-1.0
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // listeners, with Catch2 2
#include <iostream>
#include <string>
#include <utility>

#include "catch.hpp"
#include "device.hpp"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using listener = Catch::EventListenerBase;
#else
using listener = Catch::TestEventListenerBase;
#endif

/// Says what CTest looks for.
struct skipping : listener {
  using listener::listener;
  void testCaseEnded(const Catch::TestCaseStats& ended) override {
    const std::string reason = std::exchange(skipped_for, {});
    if (ended.totals.assertions.failed == 0 && !reason.empty()) {
      std::cout << "skipped: " << reason << '\n';
    }
  }
};
CATCH_REGISTER_LISTENER(skipping)

}  // namespace

TEST_CASE("a failure stays one though the rest is skipped", "[.harness]") {
  CHECK(skipped_for == "nothing");
  VERBENA_SKIP("after a failure");
}
