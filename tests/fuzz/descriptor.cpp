// SPDX-License-Identifier: BSL-1.0
// FC-29: region descriptors, whose bytes may come from anyone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <verbena/memory/descriptor.hpp>

namespace vb = verbena;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Whatever is accepted can be written again to the same bytes; whatever is not has a reason.
void read(std::span<const std::byte> bytes) {
  const auto outcome = vb::read_region<std::byte, vb::remote_readable>(bytes);
  if (!outcome) {
    require(outcome.error().code().category() == vb::category());
    require(!outcome.error().message().empty());
    return;
  }
  const auto region = outcome.value();
  require(region.size() != 0);
  require(region.address() + region.size() >= region.address());
  std::vector<std::byte> again(bytes.size());
  vb::descriptor_header{vb::descriptor_header::kind::region, 32, 1, 0}.write(again);
  const vb::region_record record{region.address(), region.size(), region.key(),
                                 static_cast<vb::rights>(std::to_integer<std::uint8_t>(bytes[28]))};
  record.write(std::span{again}.last<vb::region_record::wire_size>());
  require(std::ranges::equal(again, bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
  read(bytes);

  // A descriptor that is right but for some bits, or most inputs would end at the magic.
  std::vector<std::byte> changed(32);
  vb::descriptor_header{vb::descriptor_header::kind::region, 32, 1, 0}.write(changed);
  vb::region_record{0x7f00'0000'1000, 4096, vb::rkey{0x1234}, vb::rights::remote_read}.write(
      std::span{changed}.last<vb::region_record::wire_size>());
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    changed[std::to_integer<std::size_t>(bytes[i]) % changed.size()] ^= bytes[i + 1];
  }
  read(changed);
  return 0;
}
