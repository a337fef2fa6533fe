// SPDX-License-Identifier: BSL-1.0
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <verbena/connection/device.hpp>
#include <verbena/memory/registration.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/verbs/protection_domain.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

using fabricated::call;
using fabricated::kind;
using verbena::grants_of;
namespace vb = verbena;

namespace {

template <class T, vb::role... Roles>
auto registered(const vb::verbs::protection_domain& domain, std::span<T> memory) {
  return vb::registration<T, grants_of<Roles...>>::create(domain, memory);
}

int access_of(const ibv_mr* native) {
  return static_cast<const fabricated::region*>(native)->access;
}

}  // namespace

TEST_CASE("FC-18 a sink carries remote write on iWARP and nowhere else") {
  for (const ibv_transport_type transport : {IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP}) {
    fabricated::device adapter{"fab0", transport};
    const auto opened = adapter.open();
    const auto domain = vb::verbs::protection_domain::create(opened).value();
    std::array<int, 4> memory{};
    const std::span<int> all{memory};
    const bool iwarp = transport == IBV_TRANSPORT_IWARP;
    const int sink = IBV_ACCESS_LOCAL_WRITE | (iwarp ? int{IBV_ACCESS_REMOTE_WRITE} : 0);
    CHECK(access_of(registered<int, vb::sink>(domain, all).value().native_handle()) == sink);
    // The remote end of a read is not what iWARP is particular about.
    CHECK(access_of(registered<int, vb::remote_readable>(domain, all).value().native_handle()) ==
          IBV_ACCESS_REMOTE_READ);
    CHECK(access_of(registered<int, vb::source>(domain, all).value().native_handle()) == 0);
  }
}

TEST_CASE("FC-18 the right that iWARP needs is not one that a peer is granted") {
  CHECK(vb::remote_part(vb::registration<int, grants_of<vb::sink>>::granted) == vb::rights{});
}

TEST_CASE("FC-17 memory that can not be written is registered without local write") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  {
    const std::span<const int> memory{static_cast<const int*>(page), 1024};
    const auto source = registered<const int, vb::source>(domain, memory).value();
    const auto readable = registered<const int, vb::remote_readable>(domain, memory).value();
    CHECK(access_of(source.native_handle()) == 0);
    CHECK(access_of(readable.native_handle()) == IBV_ACCESS_REMOTE_READ);
    CHECK(source.view().size() == 1024);
    static_assert(std::is_same_v<decltype(source.data()), const int*>);
  }
  ::munmap(page, 4096);
}

TEST_CASE("FC-19 lkey and rkey come from their own fields") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  std::array<int, 4> memory{};
  const auto mine = registered<int, vb::remote_writable>(domain, std::span{memory}).value();
  const ibv_mr* native = mine.native_handle();
  REQUIRE(native->lkey != native->rkey);
  CHECK(static_cast<std::uint32_t>(mine.view().key()) == native->lkey);
  CHECK(static_cast<std::uint32_t>(mine.remote_key()) == native->rkey);
  CHECK(mine.view().domain() == domain.id());
}

TEST_CASE("atomics on iWARP are not supported, and the provider is not asked") {
  fabricated::device adapter{"siw9", IBV_TRANSPORT_IWARP};
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  std::array<std::uint64_t, 1> memory{};
  const auto refused = registered<std::uint64_t, vb::remote_atomic>(domain, std::span{memory});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::not_supported);
  CHECK(mentions(refused.error(), "siw9"));
  CHECK(adapter.count(call::reg_mr) == 0);
}

TEST_CASE("nothing can not be registered") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto refused = registered<int, vb::source>(domain, std::span<int>{});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::invalid_argument);
  CHECK(adapter.count(call::reg_mr) == 0);
}

TEST_CASE("FC-22 a registration is moved, closed, and then inert") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  std::array<int, 4> memory{};
  auto first = registered<int, vb::remote_writable>(domain, std::span{memory}).value();
  auto second = std::move(first);
  CHECK(first.size() == 0);  // NOLINT(bugprone-use-after-move)
  CHECK(first.native_handle() == nullptr);
  CHECK(first.view().domain() == 0);
  CHECK(first.close().has_value());
  CHECK(second.size() == 4);
  CHECK(second.data() == memory.data());

  adapter.refuse.add(call::dereg_mr, EBUSY);
  CHECK(second.close().error() == std::errc::device_or_resource_busy);
  CHECK(second.size() == 4);
  CHECK(second.close().has_value());
  CHECK(second.size() == 0);
  CHECK(adapter.live(kind::region) == 0);
}

TEST_CASE("FC-19 the key of what is no longer registered is no key at all") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  std::array<int, 4> memory{};
  auto mine = registered<int, vb::remote_writable>(domain, std::span{memory}).value();
  REQUIRE(mine.close().has_value());
  CHECK(mine.remote_key() == vb::rkey{});
  CHECK(mine.view().key() == vb::lkey{});
}

TEST_CASE("a registration that takes another's place gives its own up") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  std::array<int, 4> memory{};
  std::array<int, 8> more{};
  auto first = registered<int, vb::sink>(domain, std::span{memory}).value();
  auto second = registered<int, vb::sink>(domain, std::span<int>{more}).value();
  CHECK(adapter.live(kind::region) == 2);
  first = std::move(second);
  CHECK(adapter.live(kind::region) == 1);
  CHECK(first.size() == 8);
}

TEST_CASE("a device registers contiguous memory of any kind that has a name") {
  fabricated::device adapter;
  const auto device = vb::basic_device<vb::errors::returning>::create(adapter.open()).value();
  std::vector<std::uint16_t> vector(8);
  std::array<char, 4> array{};
  int plain[3]{};
  const auto size = [](const auto& made) { return made.value().view().size_bytes(); };
  CHECK(size(device.register_memory<vb::sink>(vector)) == 16);
  CHECK(size(device.register_memory<vb::source>(std::as_const(array))) == 4);
  CHECK(size(device.register_memory<vb::sink>(plain)) == 12);
  CHECK(size(device.register_memory<vb::sink>(std::span{plain}.first<2>())) == 8);
}
