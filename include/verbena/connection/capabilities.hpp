// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

namespace verbena {

/// What a queue pair can do: what its transport carries, its device has, was granted when it was
/// made and agreed on when it was connected. A post that needs more is refused before the provider
/// is called.
struct capabilities {
  std::string device;
  std::string transport;
  bool immediates = false;
  bool atomics = false;
  bool fenced_reads = false;
  bool empty_receives = false;       ///< receives without memory
  std::uint32_t reads = 0;           ///< and atomics in flight; 0 until it is connected
  std::uint32_t send_depth = 0;      ///< requests outstanding
  std::uint32_t receive_depth = 0;   ///< receives outstanding
  std::uint32_t send_pieces = 0;     ///< of memory in one send or write
  std::uint32_t receive_pieces = 0;  ///< of memory in one receive
  std::uint32_t read_pieces = 0;     ///< of memory that one read fills
  std::uint32_t inline_bytes = 0;
  std::uint32_t max_message = 0;  ///< bytes in one message
};

/// One line for each, such as "atomics: no".
inline std::string to_string(const capabilities& of) {
  std::string text = "transport::" + of.transport + " on " + of.device + "\n";
  const auto flag = [&](const char* name, bool has) {
    text += std::string{"  "} + name + (has ? ": yes\n" : ": no\n");
  };
  const auto number = [&](const char* name, std::uint32_t value) {
    text += std::string{"  "} + name + ": " + std::to_string(value) + "\n";
  };
  flag("immediates", of.immediates);
  flag("atomics", of.atomics);
  flag("fenced reads", of.fenced_reads);
  flag("receives without memory", of.empty_receives);
  number("reads and atomics in flight", of.reads);
  number("sends outstanding", of.send_depth);
  number("receives outstanding", of.receive_depth);
  number("pieces in a send or write", of.send_pieces);
  number("pieces in a receive", of.receive_pieces);
  number("pieces that a read fills", of.read_pieces);
  number("bytes inline", of.inline_bytes);
  number("bytes in a message", of.max_message);
  return text;
}

}  // namespace verbena
