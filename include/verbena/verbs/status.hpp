// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <system_error>

#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// How a work request ended: the values of ibv_wc_status (ibv_poll_cq(3)).
enum class status : std::uint8_t {
  success = IBV_WC_SUCCESS,
  local_length = IBV_WC_LOC_LEN_ERR,
  local_operation = IBV_WC_LOC_QP_OP_ERR,
  local_protection = IBV_WC_LOC_PROT_ERR,
  flushed = IBV_WC_WR_FLUSH_ERR,
  memory_window = IBV_WC_MW_BIND_ERR,
  bad_response = IBV_WC_BAD_RESP_ERR,
  local_access = IBV_WC_LOC_ACCESS_ERR,
  remote_invalid_request = IBV_WC_REM_INV_REQ_ERR,
  remote_access = IBV_WC_REM_ACCESS_ERR,
  remote_operation = IBV_WC_REM_OP_ERR,
  retry_exceeded = IBV_WC_RETRY_EXC_ERR,
  receiver_not_ready = IBV_WC_RNR_RETRY_EXC_ERR,
  aborted = IBV_WC_REM_ABORT_ERR,
  fatal = IBV_WC_FATAL_ERR,
  response_timeout = IBV_WC_RESP_TIMEOUT_ERR,
  general = IBV_WC_GENERAL_ERR,
};

/// The category "completion": values are those of ibv_wc_status, texts are this library's.
inline const std::error_category& status_category() noexcept {
  static const struct final : std::error_category {
    const char* name() const noexcept override { return "completion"; }
    std::string message(int value) const override {
      switch (static_cast<status>(value)) {
        case status::success: return "success";
        case status::local_length: return "local length error";
        case status::local_operation: return "local queue pair operation error";
        case status::local_protection: return "local protection error";
        case status::flushed: return "flushed";
        case status::memory_window: return "memory window error";
        case status::bad_response: return "bad response";
        case status::local_access: return "local access error";
        case status::remote_invalid_request: return "remote invalid request";
        case status::remote_access: return "remote access error";
        case status::remote_operation: return "remote operation error";
        case status::retry_exceeded: return "retry count exceeded";
        case status::receiver_not_ready: return "receiver not ready";
        case status::aborted: return "aborted";
        case status::fatal: return "fatal error";
        case status::response_timeout: return "response timeout";
        case status::general: return "general error";
      }
      return "completion status " + std::to_string(value);
    }
  } instance;
  return instance;
}

inline std::error_code make_error_code(status value) noexcept {
  return {static_cast<int>(value), status_category()};
}

}  // namespace verbena

template <>
struct std::is_error_code_enum<verbena::status> : std::true_type {};
