// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <verbena/verbs/error.hpp>

#if defined(__cpp_exceptions)
#define VERBENA_EXCEPTIONS 1
#else
#define VERBENA_EXCEPTIONS 0
#endif

namespace verbena {

/// The exception of errors::throwing. `code()` decides, `what()` is the sentence of the error.
class failure : public std::system_error {
 public:
  explicit failure(error value)
      : std::system_error{value.code()}, reason_{std::move(value)}, text_{reason_.message()} {}
  const char* what() const noexcept override { return text_.c_str(); }
  const error& reason() const noexcept { return reason_; }

 private:
  error reason_;
  std::string text_;
};

/// Throws `value` as a failure; where exceptions are off, prints it and aborts.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(error value) {
#if VERBENA_EXCEPTIONS
  throw failure{std::move(value)};
#else
  std::fprintf(stderr, "verbena: %s\n", value.message().c_str());
  std::abort();
#endif
}

}  // namespace verbena
