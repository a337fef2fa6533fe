// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <verbena/connection/gid_choice.hpp>
#include <verbena/memory/descriptor.hpp>

namespace verbena {

/// How many regions a descriptor carries at most.
inline constexpr std::size_t regions_in_descriptor = 4;

/// A queue pair and the regions it opens to its peer, in bytes of a fixed size.
using descriptor_bytes = std::array<std::byte, 160>;

/// Regions as they stand in a descriptor; places from `count` on are empty.
struct region_list {
  std::array<region_record, regions_in_descriptor> records{};
  std::size_t count = 0;

  void add(const region_record& record) noexcept { records[count++] = record; }
  /// The region at `index`, typed, with the rights that `Roles` need or remote write where none is
  /// named. Errors: errc::no_right with what is granted; errc::wire_value where T does not fit;
  /// errc::capacity for an index beyond those described.
  template <class T, role... Roles>
  auto at(std::size_t index) const {
    constexpr rights needed =
        sizeof...(Roles) == 0 ? rights::remote_write : remote_part(grants_of<Roles...>);
    using region = remote_region<T, needed>;
    if (index < count) return records[index].template as<T, needed>();
    return result<region>{error{
        errc::capacity,
        "region " + std::to_string(index) + " of a peer that described " + std::to_string(count)}};
  }
  /// Whether a queue pair in protection domain `domain` can open these to its peer. Errors:
  /// errc::moved_from for memory that is no longer there, errc::foreign_domain.
  result<void> check(std::uint32_t domain) const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string which = "opening region " + std::to_string(i) + " to the peer";
      if (records[i].length == 0) return error{errc::moved_from, which};
      if (records[i].domain != domain) return error{errc::foreign_domain, which};
    }
    return success();
  }
  rights granted() const noexcept {
    rights all{};
    for (const region_record& each : std::span{records}.first(count)) all = all | each.granted;
    return all;
  }
};

/// What a peer must know to reach a queue pair. After the common header of 8 bytes, numbers in
/// network order:
///   8 transport u8 | 9 link layer u8 | 10 reads answered u8 | 11 reads asked u8
///   12 kind of first GID u8 | 13 of second u8 | 14 lid u16 | 16 queue pair number u32
///   20 first packet number u32 | 24 longest message u32 | 28 queue key u32, of UD only, else zero
///   32 GID (16) | 48 GID (16)
///   64 regions, 24 bytes each, unused ones zero
struct endpoint_descriptor {
  std::uint8_t transport = 0;  ///< an ibv_qp_type
  std::uint8_t link_layer = 0;
  std::uint8_t mtu = 0;  ///< an ibv_mtu
  std::uint8_t reads_answered = 0;
  std::uint8_t reads_asked = 0;
  std::uint16_t lid = 0;
  std::uint32_t number = 0;        ///< 24 bits
  std::uint32_t first_packet = 0;  ///< 24 bits
  std::uint32_t max_message = 0;
  std::uint32_t queue_key = 0;
  gid_offer gids{};
  region_list regions{};

  static constexpr std::size_t regions_at = 64;
  static_assert(regions_at + regions_in_descriptor * region_record::wire_size ==
                descriptor_bytes{}.size());

  descriptor_bytes write() const noexcept {
    descriptor_bytes bytes{};
    descriptor_header{descriptor_header::kind::endpoint, static_cast<std::uint16_t>(bytes.size()),
                      static_cast<std::uint8_t>(regions.count), mtu}
        .write(bytes);
    wire::put(bytes, 8, transport);
    wire::put(bytes, 9, link_layer);
    wire::put(bytes, 10, reads_answered);
    wire::put(bytes, 11, reads_asked);
    wire::put(bytes, 14, lid);
    wire::put(bytes, 16, number);
    wire::put(bytes, 20, first_packet);
    wire::put(bytes, 24, max_message);
    wire::put(bytes, 28, queue_key);
    for (std::size_t i = 0; i < gids.size(); ++i) {
      wire::put(bytes, 12 + i, static_cast<std::uint8_t>(gids[i].kind));
      std::transform(gids[i].raw.begin(), gids[i].raw.end(),
                     std::span{bytes}.subspan(32 + 16 * i).begin(),
                     [](std::uint8_t each) { return std::byte{each}; });
    }
    for (std::size_t i = 0; i < regions.count; ++i) {
      regions.records[i].write(std::span<std::byte, region_record::wire_size>{
          bytes.data() + regions_at + i * region_record::wire_size, region_record::wire_size});
    }
    return bytes;
  }

  /// Reads bytes that may come from anyone. Errors: errc::wire_*, naming the field.
  static result<endpoint_descriptor> read(std::span<const std::byte> bytes) {
    BOOST_OUTCOME_TRY(auto header, descriptor_header::read(bytes, descriptor_header::kind::endpoint,
                                                           regions_in_descriptor));
    if (bytes.size() != descriptor_bytes{}.size() || header.length != bytes.size()) {
      return error{errc::wire_length, "a descriptor of " + std::to_string(bytes.size()) +
                                          " bytes that says " + std::to_string(header.length) +
                                          ", expected were " +
                                          std::to_string(descriptor_bytes{}.size())};
    }
    endpoint_descriptor value;
    value.mtu = header.mtu;
    value.transport = wire::get<std::uint8_t>(bytes, 8);
    value.link_layer = wire::get<std::uint8_t>(bytes, 9);
    value.reads_answered = wire::get<std::uint8_t>(bytes, 10);
    value.reads_asked = wire::get<std::uint8_t>(bytes, 11);
    value.lid = wire::get<std::uint16_t>(bytes, 14);
    value.number = wire::get<std::uint32_t>(bytes, 16);
    value.first_packet = wire::get<std::uint32_t>(bytes, 20);
    value.max_message = wire::get<std::uint32_t>(bytes, 24);
    value.queue_key = wire::get<std::uint32_t>(bytes, 28);
    const auto field = [](const char* name, std::uint32_t found) {
      return error{errc::wire_value, std::string{name} + " " + std::to_string(found)};
    };
    if (value.mtu == 0) return field("MTU code", value.mtu);
    if (value.number == 0 || value.number > 0xff'ffff)
      return field("queue pair number", value.number);
    if (value.first_packet > 0xff'ffff) return field("first packet number", value.first_packet);
    if (value.max_message == 0) return field("longest message", value.max_message);
    if (value.transport != IBV_QPT_UD && value.queue_key != 0) {
      return field("queue key of a connected queue pair", value.queue_key);
    }
    for (std::size_t i = 0; i < value.gids.size(); ++i) {
      const auto kind = wire::get<std::uint8_t>(bytes, 12 + i);
      if (kind > static_cast<std::uint8_t>(gid_kind::roce_v2)) return field("GID kind", kind);
      value.gids[i].kind = static_cast<gid_kind>(kind);
      for (std::size_t at = 0; at < 16; ++at) {
        value.gids[i].raw[at] = wire::get<std::uint8_t>(bytes, 32 + 16 * i + at);
      }
    }
    for (std::size_t i = 0; i < header.regions; ++i) {
      BOOST_OUTCOME_TRY(
          auto record,
          region_record::read(std::span<const std::byte, region_record::wire_size>{
              bytes.data() + regions_at + i * region_record::wire_size, region_record::wire_size}));
      value.regions.add(record);
    }
    return value;
  }
};

}  // namespace verbena
