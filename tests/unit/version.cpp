// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <verbena/version.hpp>

#include "catch.hpp"

TEST_CASE("the version macros are those the build read") {
  auto const stated = std::to_string(VERBENA_VERSION_MAJOR) + '.' +
                      std::to_string(VERBENA_VERSION_MINOR) + '.' +
                      std::to_string(VERBENA_VERSION_PATCH);
  CHECK(stated == VERBENA_BUILD_VERSION);
}
