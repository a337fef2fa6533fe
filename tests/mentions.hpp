// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <string_view>

#include <verbena/verbs/error.hpp>

/// Whether a message says what a reader needs: Catch2 2 and 3 have no matcher in common for it.
inline bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline bool mentions(const verbena::error& value, std::string_view part) {
  return mentions(value.message(), part);
}
