// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <type_traits>
#include <utility>

#include <verbena/memory/keys.hpp>
#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/view.hpp>

namespace vb = verbena;

// FC-19: neither key stands for the other, nor for a number, nor a number for it.
static_assert(!std::is_convertible_v<vb::lkey, vb::rkey>);
static_assert(!std::is_constructible_v<vb::rkey, vb::lkey>);
static_assert(!std::is_constructible_v<vb::lkey, vb::rkey>);
static_assert(!std::is_convertible_v<std::uint32_t, vb::lkey>);
static_assert(!std::is_convertible_v<std::uint32_t, vb::rkey>);
static_assert(!std::is_convertible_v<vb::rkey, std::uint32_t>);

// Only an rkey enters a remote region, only an lkey a view.
using region = vb::remote_region<char, vb::rights::remote_write>;
static_assert(std::is_constructible_v<region, std::uint64_t, std::size_t, vb::rkey>);
static_assert(!std::is_constructible_v<region, std::uint64_t, std::size_t, vb::lkey>);
static_assert(!std::is_constructible_v<region, std::uint64_t, std::size_t, std::uint32_t>);
using view = vb::view<char, vb::rights{}>;
static_assert(std::is_same_v<decltype(std::declval<view>().key()), vb::lkey>);
