// SPDX-License-Identifier: BSL-1.0
#include <set>
#include <string>

#include <verbena/verbs/errc.hpp>

#include "catch.hpp"
#include "mentions.hpp"

using verbena::errc;

TEST_CASE("every errc has a text of its own") {
  std::set<std::string> texts;
  for (int value = 1; value <= static_cast<int>(errc::moved_from); ++value) {
    const std::string text = verbena::category().message(value);
    INFO(value << ": " << text);
    CHECK_FALSE(mentions(text, "unknown"));
    CHECK(texts.insert(text).second);
  }
  CHECK(mentions(verbena::category().message(0), "unknown error 0"));
  CHECK(mentions(verbena::category().message(static_cast<int>(errc::moved_from) + 1), "unknown"));
}

TEST_CASE("an errc is an error code of the category verbena") {
  const std::error_code code = errc::broken;
  CHECK(code.category() == verbena::category());
  CHECK(std::string{code.category().name()} == "verbena");
  CHECK(code.message() == "connection broken");
}

TEST_CASE("what the system has a word for compares equal to it") {
  CHECK(std::error_code{errc::would_block} == std::errc::resource_unavailable_try_again);
  CHECK(std::error_code{errc::timed_out} == std::errc::timed_out);
  CHECK(std::error_code{errc::stopped} == std::errc::operation_canceled);
  CHECK(std::error_code{errc::not_supported} == std::errc::not_supported);
  CHECK(std::error_code{errc::message_too_long} == std::errc::message_size);
  CHECK(std::error_code{errc::rejected} == std::errc::connection_refused);
  CHECK(std::error_code{errc::no_listener} == std::errc::connection_refused);
  CHECK(std::error_code{errc::unreachable} == std::errc::host_unreachable);
  CHECK(std::error_code{errc::disconnected} == std::errc::not_connected);
  CHECK(std::error_code{errc::no_device} == std::errc::no_such_device);
  CHECK(std::error_code{errc::broken} != std::errc::not_connected);
}
