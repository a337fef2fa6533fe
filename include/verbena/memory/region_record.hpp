// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <verbena/memory/keys.hpp>
#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/rights.hpp>
#include <verbena/memory/wire.hpp>
#include <verbena/verbs/result.hpp>

namespace verbena {

/// A region as descriptors carry it: 24 bytes. An rkey gives access to memory: whoever reads a
/// descriptor can use what it names.
///   0 address u64 | 8 length in bytes u64 | 16 rkey u32 | 20 rights u8 | 21 zero (3)
struct region_record {
  static constexpr std::size_t wire_size = 24;

  std::uint64_t address = 0;
  std::uint64_t length = 0;
  rkey key{};
  rights granted{};
  std::uint32_t domain = 0;  ///< number of the protection domain here; not on the wire

  /// The record of a buffer or registration; its memory must stay registered while peers use it.
  template <class Owner>
  static region_record of(const Owner& owner) noexcept {
    static_assert(remote_part(Owner::granted) != rights{},
                  "only memory with a remote role can be described: remote_readable, "
                  "remote_writable or remote_atomic");
    return {reinterpret_cast<std::uintptr_t>(owner.data()), owner.view().size_bytes(),
            owner.remote_key(), remote_part(Owner::granted), owner.view().domain()};
  }

  void write(std::span<std::byte, wire_size> bytes) const noexcept {
    wire::put(bytes, 0, address);
    wire::put(bytes, 8, length);
    wire::put(bytes, 16, static_cast<std::uint32_t>(key));
    wire::put(bytes, 20, static_cast<std::uint8_t>(granted));
    for (std::size_t i = 21; i < wire_size; ++i) bytes[i] = std::byte{0};
  }

  /// Errors: errc::wire_value for unknown rights, none at all, a length of 0 or a range that
  /// wraps around the address space.
  static result<region_record> read(std::span<const std::byte, wire_size> bytes) {
    const region_record record{wire::get<std::uint64_t>(bytes, 0),
                               wire::get<std::uint64_t>(bytes, 8),
                               rkey{wire::get<std::uint32_t>(bytes, 16)},
                               static_cast<rights>(wire::get<std::uint8_t>(bytes, 20))};
    const auto raw = static_cast<unsigned>(record.granted);
    if (raw == 0 || remote_part(record.granted) != record.granted || raw > 0xf) {
      return error{errc::wire_value, "rights " + std::to_string(raw) + " of a region"};
    }
    if (wire::get<std::uint8_t>(bytes, 21) != 0 || wire::get<std::uint16_t>(bytes, 22) != 0) {
      return error{errc::wire_value, "reserved bytes of a region"};
    }
    if (record.length == 0 || record.address + record.length < record.address) {
      return error{errc::wire_value, "a region of " + std::to_string(record.length) + " bytes"};
    }
    return record;
  }

  /// Typed, once the rights have been found to be enough.
  /// Errors: errc::no_right; errc::wire_value when the length or address does not fit T.
  template <class T, rights Needed>
  result<remote_region<T, Needed>> as() const {
    if (!allows(granted, Needed)) {
      return error{errc::no_right, "the peer's region grants " + to_string(granted) +
                                       ", asked was " + to_string(Needed)};
    }
    if (length % sizeof(T) != 0 || address % alignof(T) != 0) {
      return error{errc::wire_value, "a region of " + std::to_string(length) + " bytes at " +
                                         std::to_string(address) + " as elements of " +
                                         std::to_string(sizeof(T)) + " bytes"};
    }
    return remote_region<T, Needed>{address, length / sizeof(T), key};
  }
};

}  // namespace verbena
