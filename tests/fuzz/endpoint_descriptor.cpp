// SPDX-License-Identifier: BSL-1.0
// FC-29: endpoint descriptors, whose bytes may come from anyone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <verbena/connection/endpoint_descriptor.hpp>

namespace vb = verbena;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Whatever is accepted has values that a queue pair can be given, and can be written again to
/// bytes that read the same; whatever is not has a reason.
void read(std::span<const std::byte> bytes) {
  const auto outcome = vb::endpoint_descriptor::read(bytes);
  if (!outcome) {
    require(outcome.error().code().category() == vb::category());
    require(!outcome.error().message().empty());
    return;
  }
  const vb::endpoint_descriptor& value = outcome.value();
  require(value.mtu >= IBV_MTU_256 && value.mtu <= IBV_MTU_4096);
  require(value.number != 0 && value.number <= 0xff'ffff);
  require(value.first_packet <= 0xff'ffff);
  require(value.max_message != 0);
  require(value.regions.count <= vb::regions_in_descriptor);
  for (const vb::gid_candidate& each : value.gids) (void)each.text();
  const vb::descriptor_bytes again = value.write();
  const auto second = vb::endpoint_descriptor::read(again);
  require(second.has_value());
  require(second.value().write() == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
  read(bytes);

  vb::endpoint_descriptor good;
  good.transport = IBV_QPT_RC;
  good.link_layer = IBV_LINK_LAYER_ETHERNET;
  good.mtu = IBV_MTU_1024;
  good.number = 17;
  good.max_message = 1U << 30;
  good.gids[0].kind = vb::gid_kind::roce_v2;
  good.regions.add({0x1000, 64, vb::rkey{5}, vb::rights::remote_read});
  vb::descriptor_bytes changed = good.write();
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    changed[std::to_integer<std::size_t>(bytes[i]) % changed.size()] ^= bytes[i + 1];
  }
  read(changed);
  return 0;
}
