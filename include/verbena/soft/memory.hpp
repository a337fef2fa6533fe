// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <verbena/soft/cause.hpp>
#include <verbena/soft/objects.hpp>

/// Regions and the copying between them.
namespace verbena::soft {

/// Keys: kind in the top bit, so that an lkey is no rkey; place of the region; generation.
constexpr std::uint32_t make_key(std::uint32_t place, std::uint32_t generation,
                                 bool remote) noexcept {
  return (remote ? 0x8000'0000U : 0U) | place << 8 | (generation & 0xff);
}

inline std::uint64_t seal_of(const region_view& of, std::uint32_t generation) noexcept {
  return seal_of(of.owner, generation, of.domain, of.access, of.base, of.length, of.arena.index,
                 of.arena.generation, of.offset);
}

/// The place in the table that a key leads to; none where it is no key of that kind.
constexpr std::uint32_t place_of_key(std::uint32_t key, bool remote) noexcept {
  const std::uint32_t place = (key >> 8) & 0x7f'ffff;
  return place < region_limit && (key >> 31 != 0) == remote ? place : none;
}

/// The generation of a region that is alive now under this key; 0 where none is.
inline std::uint32_t generation_of(const region_entry& entry, std::uint32_t key) noexcept {
  const std::uint32_t generation = entry.generation.load(std::memory_order_seq_cst);
  return generation % 2 == 0 || (generation & 0xff) != (key & 0xff) ? 0 : generation;
}

inline region_view view_of(const region_entry& entry) noexcept {
  return {entry.owner.load(std::memory_order_relaxed),
          entry.domain.load(std::memory_order_relaxed),
          entry.access.load(std::memory_order_relaxed),
          entry.base.load(std::memory_order_relaxed),
          entry.length.load(std::memory_order_relaxed),
          {entry.arena.load(std::memory_order_relaxed),
           entry.arena_generation.load(std::memory_order_relaxed)},
          entry.offset.load(std::memory_order_relaxed)};
}

/// This process's own region of a key, by what no other process can have changed.
[[gnu::always_inline]] inline region_view find_own(const context& here, std::uint32_t key,
                                                   bool remote) noexcept {
  const std::uint32_t place = place_of_key(key, remote);
  if (place == none) return {};
  const region_entry& entry = here.regions[place];
  return generation_of(entry, key) != 0 ? view_of(entry) : region_view{};
}

/// A region of this process by the lkey it had, as long as it is being deregistered: what had come
/// before is still put into it.
[[gnu::cold, gnu::noinline]] inline region_view find_going(const context& here,
                                                           std::uint32_t key) noexcept {
  const std::uint32_t place = place_of_key(key, false);
  if (place == none) return {};
  const region_entry& entry = here.regions[place];
  const std::uint32_t generation = entry.generation.load(std::memory_order_seq_cst);
  const bool is_it = generation % 2 == 0 && ((generation - 1) & 0xff) == (key & 0xff);
  return is_it ? view_of(entry) : region_view{};
}

[[gnu::noinline]] inline seen_region look(const segment& in, std::uint32_t key,
                                          bool remote) noexcept {
  const std::uint32_t place = place_of_key(key, remote);
  if (place == none) return {};
  const region_entry& entry = in.regions[place];
  const std::uint32_t generation = generation_of(entry, key);
  if (generation == 0) return {};
  const std::uint64_t seal = entry.seal.load(std::memory_order_acquire);
  const region_view view = view_of(entry);
  return seal == seal_of(view, generation) ? seen_region{key, generation, view} : seen_region{};
}

/// The region of a key that belongs to process `owner`, as this process may believe it; `last` says
/// what was seen before, which stays true as long as its generation does.
[[gnu::always_inline]] inline region_view find_of(const context& here, std::uint32_t owner,
                                                  std::uint32_t key, bool remote,
                                                  seen_region& last) noexcept {
  if (owner == here.fabric->me()) return find_own(here, key, remote);
  const segment& in = here.fabric->shared();
  const bool is_as_before = key == last.key && key != 0 &&
                            in.regions[place_of_key(key, remote)].generation.load(
                                std::memory_order_seq_cst) == last.generation;
  if (!is_as_before) [[unlikely]]
    last = look(in, key, remote);
  return last.view.owner == owner ? last.view : region_view{};
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

/// Up to 16 bytes as two words, the rest zero. Read whole, or what has just been written in parts
/// would have to leave the processor's store buffer first.
inline std::array<std::uint64_t, 2> words_of(const std::byte* from, std::size_t length) noexcept {
  const auto read = [from]<class Word>(Word word, std::size_t at) {
    std::memcpy(&word, from + at, sizeof word);
    return std::uint64_t{word};
  };
  if (length == 8) return {read(std::uint64_t{}, 0), 0};
  if (length > 8)
    return {read(std::uint64_t{}, 0), read(std::uint64_t{}, length - 8) >> 8 * (16 - length)};
  if (length >= 4)
    return {read(std::uint32_t{}, 0) | read(std::uint32_t{}, length - 4) << 8 * (length - 4), 0};
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < length; ++at) word |= read(std::uint8_t{}, at) << 8 * at;
  return {word, 0};
}

/// Copies up to 16 bytes.
inline void copy_small(std::byte* to, const std::byte* from, std::size_t length) noexcept {
  // Both ends of it, which overlap unless it is as long as both: no loop, no call.
  const auto ends = [&]<class Word>(Word) {
    Word first;
    Word last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + length - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + length - sizeof last, &last, sizeof last);
  };
  if (length >= 8) return ends(std::uint64_t{});
  if (length >= 4) return ends(std::uint32_t{});
  for (std::size_t at = 0; at < length; ++at) to[at] = from[at];
}

enum class reached { yes, gone, forbidden, unmapped };

constexpr cause cause_of(reached how) noexcept {
  if (how == reached::forbidden) return cause::memory_forbidden;
  return how == reached::unmapped ? cause::memory_unmapped : cause::unsaid;
}

/// Where a part of a region is in this process: its own memory, or shared memory that is mapped
/// here; null for other memory. Under a fabric::work_lock.
[[gnu::always_inline]] inline std::byte* map(context& here, const region_view& of,
                                             std::uint64_t address, std::uint64_t length) noexcept {
  fabric& on = *here.fabric;
  if (of.owner == on.me()) return reinterpret_cast<std::byte*>(address);
  const std::uint64_t at = of.offset + (address - of.base);
  std::byte* const mapped = on.reach(of.arena, at + length);
  return mapped == nullptr ? nullptr : mapped + at;
}

/// Copies between this process's memory and other memory of process `owner`.
[[gnu::cold, gnu::noinline]] inline reached transfer_far(context& here, std::uint32_t owner,
                                                         std::uint64_t address, std::byte* local,
                                                         std::size_t length,
                                                         bool outward) noexcept {
  const auto pid = static_cast<pid_t>(here.fabric->pid_of(owner));
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
    if (moved < 0 && errno == EFAULT) return reached::unmapped;
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

/// Copies between this process's memory and a part of a region, in either direction.
[[gnu::always_inline]] inline reached transfer(context& here, const region_view& of,
                                               std::uint64_t address, std::byte* local,
                                               std::size_t length, bool outward) noexcept {
  if (std::byte* mapped = map(here, of, address, length); mapped != nullptr) [[likely]] {
    outward ? copy_bytes(mapped, local, length) : copy_bytes(local, mapped, length);
    return reached::yes;
  }
  return transfer_far(here, of.owner, address, local, length, outward);
}

}  // namespace verbena::soft
