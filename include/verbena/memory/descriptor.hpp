// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <verbena/memory/region_record.hpp>
#include <verbena/memory/role.hpp>

namespace verbena {

/// The first eight bytes of everything verbena puts on a wire.
///   0 version u8 | 1 kind u8 | 2 magic "VB" | 4 length of the whole u16 | 6 regions u8 | 7 mtu u8
struct descriptor_header {
  static constexpr std::size_t wire_size = 8;
  static constexpr std::uint8_t current_version = 1;
  static constexpr std::uint16_t magic = 0x5642;

  enum class kind : std::uint8_t { region = 1, endpoint = 2, private_data = 3, refusal = 4 };

  kind what{};
  std::uint16_t length = 0;
  std::uint8_t regions = 0;
  std::uint8_t mtu = 0;  ///< an ibv_mtu code, 0 where the format has none

  void write(std::span<std::byte> bytes) const noexcept {
    wire::put(bytes, 0, current_version);
    wire::put(bytes, 1, static_cast<std::uint8_t>(what));
    wire::put(bytes, 2, magic);
    wire::put(bytes, 4, length);
    wire::put(bytes, 6, regions);
    wire::put(bytes, 7, mtu);
  }

  /// Reads and checks a header of the expected kind with at most `most` regions.
  /// Errors: errc::wire_length, wire_magic, wire_version, wire_value; each says what was found.
  static result<descriptor_header> read(std::span<const std::byte> bytes, kind expected,
                                        std::size_t most) {
    if (bytes.size() < wire_size) {
      return error{errc::wire_length, "a descriptor of " + std::to_string(bytes.size()) + " bytes"};
    }
    if (wire::get<std::uint16_t>(bytes, 2) != magic) {
      return error{errc::wire_magic, "the bytes received"};
    }
    if (const auto version = wire::get<std::uint8_t>(bytes, 0); version != current_version) {
      return error{errc::wire_version, "the peer's descriptor has version " +
                                           std::to_string(version) + ", this program's is " +
                                           std::to_string(current_version)};
    }
    const descriptor_header header{
        static_cast<kind>(wire::get<std::uint8_t>(bytes, 1)), wire::get<std::uint16_t>(bytes, 4),
        wire::get<std::uint8_t>(bytes, 6), wire::get<std::uint8_t>(bytes, 7)};
    if (header.what != expected) {
      return error{errc::wire_value,
                   "a descriptor of kind " + std::to_string(static_cast<int>(header.what)) +
                       ", expected was " + std::to_string(static_cast<int>(expected))};
    }
    if (header.regions > most) {
      return error{errc::wire_value,
                   std::to_string(header.regions) + " regions, at most " + std::to_string(most)};
    }
    if (header.mtu > IBV_MTU_4096) {
      return error{errc::wire_value, "MTU code " + std::to_string(header.mtu)};
    }
    return header;
  }
};

/// One region in bytes of its own, to be carried to a peer by any means.
using region_descriptor =
    std::array<std::byte, descriptor_header::wire_size + region_record::wire_size>;

/// Describes a buffer or registration with a remote role. The peer's queue pair of this memory
/// must allow what the role grants: see options::peer_may.
template <class Owner>
region_descriptor describe_region(const Owner& owner) noexcept {
  region_descriptor bytes{};
  descriptor_header{descriptor_header::kind::region, bytes.size(), 1, 0}.write(bytes);
  region_record::of(owner).write(std::span{bytes}.template last<region_record::wire_size>());
  return bytes;
}

/// Reads what describe_region() wrote; the bytes may come from anyone.
/// Errors: errc::wire_*; errc::no_right when the peer grants less than `Roles` need.
template <class T, role... Roles>
result<remote_region<T, remote_part(grants_of<Roles...>)>> read_region(
    std::span<const std::byte> bytes) {
  BOOST_OUTCOME_TRY(auto header,
                    descriptor_header::read(bytes, descriptor_header::kind::region, 1));
  if (bytes.size() != region_descriptor{}.size() || header.length != bytes.size() ||
      header.regions != 1) {
    return error{errc::wire_length, "a region descriptor of " + std::to_string(bytes.size()) +
                                        " bytes, expected were " +
                                        std::to_string(region_descriptor{}.size())};
  }
  if (header.mtu != 0) {
    return error{errc::wire_value, "MTU code " + std::to_string(header.mtu) + " of a region"};
  }
  BOOST_OUTCOME_TRY(auto record,
                    region_record::read(bytes.template last<region_record::wire_size>()));
  return record.as<T, remote_part(grants_of<Roles...>)>();
}

}  // namespace verbena
