// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <verbena/connection/endpoint_descriptor.hpp>

namespace verbena {

/// What both ends tell each other in the private data of RDMA CM: the largest MTU they can do and
/// the regions they open. An rdma_connect carries 56 bytes (rdma_connect(3)), which is the common
/// header and two regions; what is unused is zero.
struct private_data {
  static constexpr std::size_t most_regions = 2;
  static constexpr std::size_t size =
      descriptor_header::wire_size + most_regions * region_record::wire_size;
  static_assert(size == 56);
  using bytes = std::array<std::byte, size>;

  std::uint8_t mtu = 0;  ///< an ibv_mtu
  region_list regions{};

  /// Of what an end offers, buffers and registrations.
  template <class... Regions>
  static region_list offer(const Regions&... regions) {
    static_assert(sizeof...(Regions) <= most_regions,
                  "the private data of RDMA CM carries at most two regions");
    return {{region_record::of(regions)...}, sizeof...(Regions)};
  }

  bytes write() const noexcept {
    bytes out{};
    const std::size_t used = end_of(regions.count);
    descriptor_header{descriptor_header::kind::private_data, static_cast<std::uint16_t>(used),
                      static_cast<std::uint8_t>(regions.count), mtu}
        .write(out);
    for (std::size_t i = 0; i < regions.count; ++i) {
      regions.records[i].write(std::span{out}.subspan(end_of(i)).first<region_record::wire_size>());
    }
    return out;
  }

  /// Reads bytes that may come from anyone; the CM may have padded them. Errors: errc::wire_*,
  /// naming the field, and for errc::wire_version both versions.
  static result<private_data> read(std::span<const std::byte> in) {
    BOOST_OUTCOME_TRY(auto header, descriptor_header::read(
                                       in, descriptor_header::kind::private_data, most_regions));
    if (header.length != end_of(header.regions) || header.length > in.size()) {
      return error{errc::wire_length, "private data of " + std::to_string(in.size()) +
                                          " bytes that says " + std::to_string(header.length) +
                                          " with " + std::to_string(header.regions) + " regions"};
    }
    if (header.mtu == 0) return error{errc::wire_value, "MTU code 0"};
    private_data value;
    value.mtu = header.mtu;
    for (std::size_t i = 0; i < header.regions; ++i) {
      BOOST_OUTCOME_TRY(auto record, region_record::read(
                                         in.subspan(end_of(i)).first<region_record::wire_size>()));
      value.regions.add(record);
    }
    return value;
  }

 private:
  static constexpr std::size_t end_of(std::size_t count) noexcept {
    return descriptor_header::wire_size + count * region_record::wire_size;
  }
};

}  // namespace verbena
