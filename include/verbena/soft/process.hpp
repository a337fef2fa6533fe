// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include <verbena/soft/layout.hpp>

/// Which processes live. A process is known by its pid and the time it started, so that a pid
/// used again is not taken for its last holder; a zombie is dead, unless only its first thread is.
namespace verbena::soft {

/// When a process started, in clock ticks since boot; 0 when it does not live (any more), nothing
/// where that can not be looked up now: without a descriptor left, say.
inline std::optional<std::uint64_t> started(std::uint32_t pid) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno != ENOENT && errno != ESRCH) return {};
    return 0;
  }
  std::array<char, 1024> text{};
  const ssize_t length = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (length <= 0) return 0;
  // Fields are counted from the end of the name, which may hold anything: state is the first after
  // it, the number of threads the eighteenth, the start the twentieth.
  const char* at = std::strrchr(text.data(), ')');
  if (at == nullptr || at[1] != ' ' || at[2] == 'X') return 0;
  const bool is_zombie = at[2] == 'Z';
  at += 1;
  for (int field = 1; field < 20; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return 0;
    // A first thread that has ended before others is a zombie too.
    if (field == 17 && is_zombie && std::strtoull(at + 1, nullptr, 10) <= 1) return 0;
  }
  return std::strtoull(at + 1, nullptr, 10);
}

/// Whether the process of an entry lives. An entry that is being given away counts as dead.
inline bool lives(const process_entry& entry) noexcept {
  const std::uint32_t owner = entry.owner.load(std::memory_order_acquire);
  if (owner == 0) return false;
  const std::uint32_t pid = entry.pid.load(std::memory_order_relaxed);
  const std::uint64_t since = entry.started.load(std::memory_order_relaxed);
  if (entry.seal.load(std::memory_order_relaxed) != seal_of(owner, pid, since)) return false;
  // This process's own number too: its last holder may have been one before it in its container.
  if (started(pid).value_or(since) != since) return false;
  return since != 0 || pid == static_cast<std::uint32_t>(::getpid());
}

/// The place of an owner number.
constexpr std::uint32_t place_of(std::uint32_t owner) noexcept { return (owner & 0xff) - 1; }

}  // namespace verbena::soft
