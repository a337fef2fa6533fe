// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include <verbena/verbs/ibverbs.hpp>
#include <verbena/verbs/result.hpp>

/// How the functions of the device seam that make something say why they do not: by errno, as
/// their namesakes, and with a sentence beside it where there is more to say.
namespace verbena::soft {

inline thread_local std::optional<error> last_refusal;

inline std::nullptr_t refuse(error why) noexcept {
  errno = why.code().category() == std::generic_category() ? why.code().value() : ENOMEM;
  last_refusal = std::move(why);
  return nullptr;
}

/// What the last call of this thread that returned null had to say; told once.
inline std::optional<error> why(ibv_context*) { return std::exchange(last_refusal, std::nullopt); }

}  // namespace verbena::soft
