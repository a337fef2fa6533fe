// SPDX-License-Identifier: BSL-1.0
#include <set>
#include <string>

#include <verbena/verbs/status.hpp>

#include "catch.hpp"
#include "mentions.hpp"

using verbena::status;

TEST_CASE("every completion status has a text of its own") {
  std::set<std::string> texts;
  for (int value = IBV_WC_SUCCESS; value <= IBV_WC_GENERAL_ERR; ++value) {
    // End-to-end contexts are of a transport that no adapter has.
    if (value == IBV_WC_LOC_EEC_OP_ERR || value == IBV_WC_LOC_RDD_VIOL_ERR ||
        value == IBV_WC_REM_INV_RD_REQ_ERR || value == IBV_WC_INV_EECN_ERR ||
        value == IBV_WC_INV_EEC_STATE_ERR) {
      continue;
    }
    const std::string text = verbena::status_category().message(value);
    INFO(value << ": " << text);
    CHECK_FALSE(mentions(text, "completion status"));
    CHECK(texts.insert(text).second);
  }
  CHECK(verbena::status_category().message(250) == "completion status 250");
}

TEST_CASE("a status is an error code, success is none") {
  CHECK_FALSE(std::error_code{status::success});
  const std::error_code code = status::retry_exceeded;
  CHECK(code.value() == IBV_WC_RETRY_EXC_ERR);
  CHECK(std::string{code.category().name()} == "completion");
  CHECK(code != std::error_code{status::receiver_not_ready});
}
