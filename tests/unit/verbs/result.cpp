// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <memory>
#include <string>
#include <system_error>

#include <verbena/verbs/result.hpp>

#include "catch.hpp"

using verbena::errc;

TEST_CASE("the value of a result that failed throws its error") {
  const verbena::result<int> failed = verbena::error{errc::capacity, "seven of six"};
  try {
    (void)failed.value();
    FAIL("nothing was thrown");
  } catch (const verbena::failure& thrown) {
    CHECK(thrown.code() == errc::capacity);
    CHECK(std::string{thrown.what()} == "seven of six: capacity exceeded");
    CHECK(thrown.reason() == errc::capacity);
  }
  CHECK_THROWS_AS(failed.value(), std::system_error);
}

TEST_CASE("the error of a result that succeeded throws") {
  const verbena::result<int> good = 7;
  CHECK_THROWS_AS(good.error(), verbena::failure);
  CHECK(good.value() == 7);
}

TEST_CASE("a result holds what can only be moved") {
  verbena::result<std::unique_ptr<int>> made = std::make_unique<int>(3);
  CHECK(*std::move(made).value() == 3);
}
