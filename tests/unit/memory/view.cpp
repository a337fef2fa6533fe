// SPDX-License-Identifier: BSL-1.0
#include <array>

#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/view.hpp>

#include "catch.hpp"

namespace vb = verbena;

TEST_CASE("parts of a view keep its key and domain, and count elements") {
  std::array<std::uint16_t, 10> memory{};
  const vb::view<std::uint16_t, vb::rights::local_write> all{memory, vb::lkey{7}, 3};
  const auto part = all.subspan(2, 4);
  CHECK(part.data() == memory.data() + 2);
  CHECK(part.size() == 4);
  CHECK(part.size_bytes() == 8);
  CHECK(part.bytes() == reinterpret_cast<std::byte*>(memory.data() + 2));
  CHECK(part.key() == vb::lkey{7});
  CHECK(part.domain() == 3);
  CHECK(all.last(1).data() == memory.data() + 9);
  CHECK(all.subspan(8).size() == 2);
}

TEST_CASE("FC-23 sizes of views and regions are 64 bits wide") {
  const vb::remote_region<std::uint64_t, vb::rights::remote_read> far{
      0x7fff'0000'0000ULL, std::size_t{1} << 33, vb::rkey{5}};
  CHECK(far.size_bytes() == std::uint64_t{1} << 36);
  const auto part = far.subspan(std::size_t{1} << 32);
  CHECK(part.address() == 0x7fff'0000'0000ULL + (std::uint64_t{1} << 35));
  CHECK(part.size() == std::size_t{1} << 32);
  CHECK(part.key() == vb::rkey{5});
  CHECK(far.first(1).size() == 1);
}
