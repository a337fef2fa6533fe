// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace example {

/// What an example is told on its command line.
struct arguments {
  bool listens = false;
  std::string address = "0.0.0.0";
  std::uint16_t port = 7471;
  std::string device;
  std::string setup = "descriptor";
  std::string completion = "busy_poll";
  std::size_t size = 64;
  std::uint32_t iterations = 100;
  std::chrono::nanoseconds timeout = std::chrono::seconds{10};

  /// Reads the command line. Returns an exit status when the program is to end at once: after
  /// --help (0), or after it was told what is wrong (2).
  [[nodiscard]] std::optional<int> read(int count, char** words, const std::string& name,
                                        const std::string& about);
};

/// Where the two meet, as "address:port".
inline std::string to_string(const arguments& given) {
  return given.address + ":" + std::to_string(given.port);
}

}  // namespace example
