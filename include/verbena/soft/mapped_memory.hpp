// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace verbena::soft {

/// Whether this process has all of that memory, and may write it where that is asked: what an
/// adapter's driver finds out by pinning it. By /proc/self/maps (proc(5)); true where that can not
/// be read.
class mapped_memory {
 public:
  mapped_memory() noexcept : file_{::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)} {}
  ~mapped_memory() {
    if (file_ >= 0) ::close(file_);
  }
  mapped_memory(const mapped_memory&) = delete;
  mapped_memory& operator=(const mapped_memory&) = delete;

  bool holds(std::uintptr_t base, std::size_t length, bool writable) noexcept {
    if (file_ < 0 || length == 0) return true;
    const std::uintptr_t end = base + length;
    range each;
    while (base < end && next(each)) {
      if (each.end <= base) continue;
      if (each.begin > base || !each.readable || (writable && !each.writable)) return false;
      base = each.end;
    }
    return base >= end;
  }

 private:
  struct range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool readable = false;
    bool writable = false;
  };

  /// The mappings come in the order of their addresses, one a line.
  bool next(range& into) noexcept {
    std::array<char, 64> line{};
    std::size_t length = 0;
    for (char each = 0; each != '\n';) {
      if (!get(each)) return false;
      if (length + 1 < line.size()) line[length++] = each;
    }
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char read = 0;
    char write = 0;
    if (std::sscanf(line.data(), "%llx-%llx %c%c", &begin, &end, &read, &write) != 4) return false;
    into = {begin, end, read == 'r', write == 'w'};
    return true;
  }
  bool get(char& into) noexcept {
    if (at_ == filled_) {
      const ssize_t got = ::read(file_, buffer_.data(), buffer_.size());
      if (got <= 0) return false;
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
    }
    into = buffer_[at_++];
    return true;
  }

  int file_;
  std::array<char, 4096> buffer_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace verbena::soft
