// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <system_error>
#include <utility>

#include <verbena/verbs/errc.hpp>

namespace verbena {

/// A failed set-up call: a code to decide by and a sentence to read, which names the thing, what
/// was asked and what was possible. Made on cold paths only; owns its text.
class error {
 public:
  error() = default;
  error(std::error_code code, std::string what) : code_{code}, what_{std::move(what)} {}

  std::error_code code() const noexcept { return code_; }

  /// The whole sentence, ending in the code's own message.
  std::string message() const {
    return what_.empty() ? code_.message() : what_ + ": " + code_.message();
  }

  /// The same error with `context` before its sentence.
  error within(const std::string& context) const {
    return {code_, what_.empty() ? context : context + ": " + what_};
  }

  friend bool operator==(const error& left, const std::error_code& right) noexcept {
    return left.code_ == right;
  }
  friend bool operator==(const error& left, const std::error_condition& right) noexcept {
    return left.code_ == right;
  }
  friend bool operator==(const error& left, errc right) noexcept {
    return left.code_ == make_error_code(right);
  }

 private:
  std::error_code code_;
  std::string what_;
};

inline std::error_code make_error_code(const error& value) noexcept { return value.code(); }

/// The error of a positive errno.
inline error system_failure(int number, std::string what) {
  return {{number, std::generic_category()}, std::move(what)};
}

}  // namespace verbena
