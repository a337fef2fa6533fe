// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>

#include <verbena/soft/objects.hpp>

/// Regions and the copying between them.
namespace verbena::soft {

/// Keys: kind in the top bit, so that an lkey is no rkey; place of the region; generation.
constexpr std::uint32_t make_key(std::uint32_t place, std::uint32_t generation,
                                 bool remote) noexcept {
  return (remote ? 0x8000'0000U : 0U) | place << 8 | (generation & 0xff);
}

/// A copy of a region's entry, complete and consistent.
struct region_view {
  std::uint32_t owner;
  std::uint32_t domain;
  std::uint32_t access;
  std::uint64_t base;
  std::uint64_t length;
  arena_name arena;
  std::uint64_t offset;  ///< in the arena

  bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address >= base && bytes <= length && address - base <= length - bytes;
  }
};

inline std::uint64_t seal_of(const region_view& of, std::uint32_t generation) noexcept {
  return seal_of(of.owner, generation, of.domain, of.access, of.base, of.length, of.arena.index,
                 of.arena.generation, of.offset);
}

/// The region of a key if it is alive now.
inline std::optional<region_view> find(const region_entry* table, std::uint32_t key,
                                       bool remote) noexcept {
  const std::uint32_t place = (key >> 8) & 0x7f'ffff;
  if (place >= region_limit || (key >> 31 != 0) != remote) return {};
  const region_entry& entry = table[place];
  const std::uint32_t generation = entry.generation.load(std::memory_order_seq_cst);
  if (generation % 2 == 0 || (generation & 0xff) != (key & 0xff)) return {};
  const region_view view{entry.owner.load(),  entry.domain.load(),
                         entry.access.load(), entry.base.load(),
                         entry.length.load(), {entry.arena.load(), entry.arena_generation.load()},
                         entry.offset.load()};
  if (entry.seal.load() != seal_of(view, generation) ||
      entry.generation.load(std::memory_order_seq_cst) != generation) {
    return {};
  }
  return view;
}

/// The region of a key that belongs to process `owner`, as this process may believe it.
inline std::optional<region_view> find_of(const context& here, std::uint32_t owner,
                                          std::uint32_t key, bool remote) noexcept {
  const bool mine = owner == here.fabric->me();
  const auto found =
      find(mine ? here.regions.get() : here.fabric->shared().regions.data(), key, remote);
  if (found && found->owner != owner) return {};
  return found;
}

/// Copies so that a reader who polls memory sees words whole and in order.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t length) noexcept {
  if (length <= 64 && length % 8 == 0 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
    for (std::size_t at = 0; at < length; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at, 8);
      std::atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(to + at)}.store(
          word, std::memory_order_release);
    }
    return;
  }
  std::memcpy(to, from, length);
}

enum class reached { yes, gone, forbidden };

/// Where a part of a region is in this process: its own memory, or shared memory that is mapped
/// here; null for other memory. Under a visit.
inline std::byte* map(context& here, const region_view& of, std::uint64_t address,
                      std::uint64_t length) noexcept {
  fabric& on = *here.fabric;
  if (of.owner == on.me()) return reinterpret_cast<std::byte*>(address);
  const std::uint64_t at = of.offset + (address - of.base);
  std::byte* const mapped = on.reach(of.arena, at + length);
  return mapped == nullptr ? nullptr : mapped + at;
}

/// Copies between this process's memory and a part of a region, in either direction.
inline reached transfer(context& here, const region_view& of, std::uint64_t address,
                        std::byte* local, std::size_t length, bool outward) noexcept {
  fabric& on = *here.fabric;
  const fabric::visit visiting{on};
  if (std::byte* mapped = map(here, of, address, length); mapped != nullptr) {
    outward ? copy_bytes(mapped, local, length) : copy_bytes(local, mapped, length);
    return reached::yes;
  }
  const auto pid = static_cast<pid_t>(on.pid_of(of.owner));
  if (pid == 0) return reached::gone;
  std::size_t done = 0;
  while (done < length) {
    iovec mine{local + done, length - done};
    iovec theirs{reinterpret_cast<void*>(address + done), length - done};
    const ssize_t moved = outward ? ::process_vm_writev(pid, &mine, 1, &theirs, 1, 0)
                                  : ::process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
      continue;
    }
    if (moved < 0 && errno == ESRCH) return reached::gone;
    if (moved < 0 && errno == EPERM) {
      static std::atomic<bool> said{false};
      if (!said.exchange(true)) {
        std::fprintf(stderr,
                     "verbena: the system forbids access to the memory of process %d "
                     "(process_vm_writev): use "
                     "memory that the software device allocated, or allow ptrace between the two\n",
                     static_cast<int>(pid));
      }
    }
    return reached::forbidden;
  }
  return reached::yes;
}

}  // namespace verbena::soft
