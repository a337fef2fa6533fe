// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace verbena {

/// What a request may ask for beside its work; a set.
enum class option : std::uint8_t {
  none = 0,
  unsignaled = 1,
  fenced = 2,
  solicited = 4,
  inlined = 8,
  divided = 16,
};

constexpr option operator|(option left, option right) noexcept {
  return static_cast<option>(static_cast<unsigned>(left) | static_cast<unsigned>(right));
}
constexpr bool has(option set, option one) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(one)) != 0;
}

/// The options of a request, as a type: they are constants of its post.
template <option Asked>
struct with {
  static constexpr option asked = Asked;
};
using no_options = with<option::none>;

}  // namespace verbena
