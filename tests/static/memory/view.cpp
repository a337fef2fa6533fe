// SPDX-License-Identifier: BSL-1.0
#include <type_traits>

#include <verbena/memory/buffer.hpp>
#include <verbena/memory/local_memory.hpp>
#include <verbena/memory/registration.hpp>
#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/memory/view.hpp>

namespace vb = verbena;

// Views and regions are values that fit in registers or close to it; owners only move.
using view = vb::view<int, vb::rights::local_write>;
using region = vb::remote_region<int, vb::rights::remote_read>;
static_assert(std::is_trivially_copyable_v<view> && sizeof(view) <= 24);
static_assert(std::is_trivially_copyable_v<region> && sizeof(region) <= 24);
using buffer = vb::buffer<int, vb::grants_of<vb::sink>>;
static_assert(!std::is_copy_constructible_v<buffer> &&
              std::is_nothrow_move_constructible_v<buffer>);
static_assert(!std::is_copy_assignable_v<buffer> && std::is_nothrow_move_assignable_v<buffer>);
using registration = vb::registration<int, vb::grants_of<vb::sink>>;
static_assert(!std::is_copy_constructible_v<registration> &&
              std::is_nothrow_move_constructible_v<registration>);

// What an operation takes as local memory keeps its rights; plain memory is none.
static_assert(vb::local_memory<view> && vb::local_memory<buffer> && vb::local_memory<registration>);
static_assert(vb::rights_of<buffer> == vb::rights::local_write);
static_assert(!vb::local_memory<std::span<int>> && !vb::local_memory<int> &&
              !vb::local_memory<region>);
