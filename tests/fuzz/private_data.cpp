// SPDX-License-Identifier: BSL-1.0
// FC-29: the private data of RDMA CM, and that of a rejection.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <verbena/cm/private_data.hpp>
#include <verbena/cm/refusal.hpp>

namespace vb = verbena;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::span<const std::byte> bytes) {
  const vb::error rejection = vb::refusal::read(bytes);
  require(rejection == vb::errc::rejected || rejection == vb::errc::wire_version);
  require(!rejection.message().empty());

  const auto outcome = vb::private_data::read(bytes);
  if (!outcome) {
    require(outcome.error().code().category() == vb::category());
    require(!outcome.error().message().empty());
    return;
  }
  // Padding aside, what is accepted is what would be written.
  const vb::private_data& value = outcome.value();
  require(value.regions.count <= vb::private_data::most_regions);
  const auto again = value.write();
  const std::size_t used = 8 + 24 * value.regions.count;
  require(used <= bytes.size());
  require(std::ranges::equal(std::span{again}.first(used), bytes.first(used)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
  read(bytes);

  vb::private_data good;
  good.mtu = IBV_MTU_1024;
  good.regions.add({0x1000, 64, vb::rkey{5}, vb::rights::remote_read});
  vb::private_data::bytes changed = good.write();
  vb::refusal refused{bytes};
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    const auto at = std::to_integer<std::size_t>(bytes[i]);
    changed[at % changed.size()] ^= bytes[i + 1];
    refused.bytes[at % 8] ^= bytes[i + 1];
  }
  read(changed);
  read(refused.bytes);
  return 0;
}
