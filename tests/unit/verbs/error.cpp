// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include <verbena/verbs/error.hpp>

#include "catch.hpp"

using verbena::errc;
using verbena::error;

TEST_CASE("an error is its sentence and the message of its code") {
  const error value{errc::capacity, "a queue of 99 entries"};
  CHECK(value.message() == "a queue of 99 entries: capacity exceeded");
  CHECK(value == errc::capacity);
  CHECK_FALSE(value == errc::broken);
  CHECK(value.code() == make_error_code(errc::capacity));
}

TEST_CASE("an error without a sentence is the message of its code") {
  CHECK(error{errc::broken, ""}.message() == "connection broken");
}

TEST_CASE("a system failure keeps its errno in the generic category") {
  const error value = verbena::system_failure(EBUSY, "x");
  CHECK(value.code().value() == EBUSY);
  CHECK(value == std::errc::device_or_resource_busy);
}
