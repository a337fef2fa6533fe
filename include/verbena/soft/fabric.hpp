// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <verbena/soft/layout.hpp>
#include <verbena/soft/process.hpp>
#include <verbena/soft/segment_file.hpp>
#include <verbena/soft/spin_lock.hpp>
#include <verbena/soft/undo.hpp>
#include <verbena/verbs/ibverbs.hpp>
#include <verbena/verbs/result.hpp>

namespace verbena::soft {

/// This process's part in a fabric: the mapped segment, a place in its table of processes, and the
/// other processes' memory as far as it has been mapped. Tables are changed by claiming an entry's
/// owner word; joining and leaving are done under a lock on the segment's file, which a dying
/// process gives back.
class fabric {
 public:
  /// Joins the fabric of that name, making it when there is none. Errors: errno with the file;
  /// errc::mismatch when processes of another version are on it; errc::capacity when the table of
  /// processes is full.
  static result<std::shared_ptr<fabric>> join(const std::string& name) {
    if (name.size() > 32 ||
        name.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
            std::string::npos) {
      return error{std::make_error_code(std::errc::invalid_argument),
                   "fabric name \"" + name + "\": up to 32 letters, digits, - and _"};
    }
    auto made = std::shared_ptr<fabric>{new fabric};
    made->at_work_.reserve(queue_pair_limit);  // for retire(), which can not fail
    BOOST_OUTCOME_TRY(made->file_.open("/dev/shm/verbena-" + std::to_string(::geteuid()) + "-" +
                                       (name.empty() ? "default" : name)));
    const segment_file::unlock guard{made->file_};
    BOOST_OUTCOME_TRY(made->file_.map());
    made->segment_ = made->file_.mapped();
    made->reclaim();
    if (auto entered = made->enter(); !entered) {
      if (made->file_.alone()) made->file_.remove();
      return entered.error();
    }
    return made;
  }

  ~fabric() {
    if (me_ != 0 && !is_copy() && file_.lock()) {
      const segment_file::unlock guard{file_};
      abandon(me_);
      file_.mark_presence(F_UNLCK);
      if (file_.alone()) file_.remove();
    }
    for (std::uint32_t arena = 0; arena < arena_limit; ++arena) unmap(known(arena));
    unmap_all(retired_);
    unmap_all(leaving_);
  }
  fabric(const fabric&) = delete;
  fabric& operator=(const fabric&) = delete;

  segment& shared() const noexcept { return *segment_; }
  std::uint32_t me() const noexcept { return me_; }
  /// Whether this is the copy in a process that has forked from the one on the fabric, which is
  /// still there: nothing shared may be changed.
  bool is_copy() const noexcept { return maker_ != ::getpid(); }
  const std::string& path() const noexcept { return file_.path(); }
  /// Tells this fabric from others, and from one of the same name before or after it.
  std::uint64_t identity() const noexcept { return file_.identity(); }

  /// Claims a free entry of a table for this process; null when it is full, after what dead
  /// processes left has been taken back.
  template <class Entry, std::size_t Size>
  Entry* claim(std::array<Entry, Size>& table) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (Entry& each : table) {
        std::uint32_t nobody = 0;
        if (each.owner.load(std::memory_order_relaxed) == 0 &&
            each.owner.compare_exchange_strong(nobody, me_, std::memory_order_acq_rel)) {
          return &each;
        }
      }
      if (attempt == 0 && file_.lock()) {
        const segment_file::unlock guard{file_};
        reclaim();
      }
    }
    return nullptr;
  }

  /// The error of a table without a free place.
  error full(const char* table, std::uint32_t places) const {
    return {errc::capacity, std::string{"the table of "} + table + " of fabric " + path() +
                                ", of " + std::to_string(places) + " places, is full"};
  }

  /// Memory that the other processes can map.
  struct mapped_arena {
    arena_name name;
    std::byte* base = nullptr;
  };

  /// `length` bytes of it, whole pages. Errors: errc::capacity when the table is full, or without
  /// so much shared memory left.
  result<mapped_arena> allocate(std::size_t length) {
    arena_entry* entry = claim(segment_->arenas);
    if (entry == nullptr) return full("shared memory", arena_limit);
    const auto index = static_cast<std::uint32_t>(entry - segment_->arenas.data());
    const std::uint32_t generation = entry->generation.load() + 1;
    undo free_entry{[&] { entry->owner.store(0); }};
    auto memory = file_.make_memory(arena_path(index, generation).data(), length);
    if (!memory) return memory.error();
    free_entry.keep();
    std::byte* const base = memory.value();
    entry->generation.store(generation, std::memory_order_release);
    {
      const std::scoped_lock held{mapping_};
      retire(index);
      remember(index, {generation, base, length});
    }
    return mapped_arena{{index, generation}, base};
  }

  void release(const arena_name& of) noexcept {
    if (is_copy()) {
      const std::scoped_lock held{mapping_};
      return retire(of.index);
    }
    arena_entry& entry = segment_->arenas[of.index];
    ::unlink(arena_path(of.index, of.generation).data());
    entry.generation.store(of.generation + 1, std::memory_order_release);
    {
      const std::scoped_lock held{mapping_};
      retire(of.index);
    }
    entry.owner.store(0, std::memory_order_release);
  }

  /// The arena that holds all of this memory; none where it is memory of another kind.
  mapped_arena locate(std::uintptr_t address, std::size_t length) noexcept {
    const std::scoped_lock held{mapping_};
    for (std::uint32_t index = 0; index < arena_limit; ++index) {
      const auto base = reinterpret_cast<std::uintptr_t>(known_[index].base.load());
      const std::size_t size = known_[index].length.load();
      if (base != 0 && base <= address && length <= size && address - base <= size - length) {
        return {{index, static_cast<std::uint32_t>(known_[index].stamp.load() - 1)},
                known_[index].base.load()};
      }
    }
    return {};
  }

  /// The lock of a queue pair among the threads of this process, by its place. While one is held,
  /// no memory that reach() gave out is unmapped.
  struct alignas(64) work_lock : spin_lock {};
  work_lock& work_on(std::uint32_t place) noexcept { return locks_[place % queue_pair_limit]; }

  /// Where an arena is in this process, mapping it if need be; null when it is gone or smaller
  /// than `needed`. What stands in it may be changed by its owner at any time. Under a work_lock.
  [[gnu::always_inline]] std::byte* reach(const arena_name& of, std::uint64_t needed) noexcept {
    const auto [arena, generation] = of;
    if (arena >= arena_limit ||
        segment_->arenas[arena].generation.load(std::memory_order_acquire) != generation)
      return nullptr;
    known_mapping& known = known_[arena];
    // Sequentially consistent, as the lock before it: see retire().
    if (known.stamp.load(std::memory_order_seq_cst) == stamp_of(generation)) [[likely]] {
      std::byte* const base = known.base.load(std::memory_order_acquire);
      const std::size_t length = known.length.load(std::memory_order_acquire);
      if (known.stamp.load(std::memory_order_relaxed) == stamp_of(generation)) {
        return needed <= length ? base : nullptr;
      }
    }
    return reach_anew(of, needed);
  }

  /// Whether what reach() gave out earlier is still so. Under a work_lock.
  bool is_still_at(const arena_name& of, const std::byte* base) const noexcept {
    const known_mapping& known = known_[of.index];
    return known.stamp.load(std::memory_order_seq_cst) == stamp_of(of.generation) &&
           known.base.load(std::memory_order_acquire) == base;
  }

  /// The pid of the process with this owner number; 0 when it does not live.
  std::uint32_t pid_of(std::uint32_t owner) noexcept {
    return alive(owner) ? pids_[place_of(owner)].load(std::memory_order_relaxed) : 0;
  }

  /// Whether the process with this owner number lives. The answer may be a millisecond old.
  bool alive(std::uint32_t owner) noexcept {
    if (owner == me_) return true;
    if (owner == 0 || place_of(owner) >= process_limit) return false;
    const process_entry& entry = segment_->processes[place_of(owner)];
    if (entry.owner.load(std::memory_order_acquire) != owner) return false;
    const std::int64_t now = coarse_now();
    std::atomic<std::int64_t>& seen = seen_[place_of(owner)];
    if (now - seen.load(std::memory_order_acquire) < 1'000'000) return true;
    return alive_now(owner);
  }

  /// As alive(), but as it is now.
  bool alive_now(std::uint32_t owner) noexcept {
    if (owner == me_) return true;
    if (owner == 0 || place_of(owner) >= process_limit) return false;
    const process_entry& entry = segment_->processes[place_of(owner)];
    const std::uint32_t pid = entry.pid.load(std::memory_order_relaxed);
    if (!lives(entry) || entry.owner.load(std::memory_order_acquire) != owner) return false;
    pids_[place_of(owner)].store(pid, std::memory_order_relaxed);
    seen_[place_of(owner)].store(coarse_now(), std::memory_order_release);
    return true;
  }

  /// As alive(), but asked afresh.
  bool alive_now(std::uint32_t owner) const noexcept {
    if (owner == me_) return true;
    if (owner == 0 || place_of(owner) >= process_limit) return false;
    const process_entry& entry = segment_->processes[place_of(owner)];
    return lives(entry) && entry.owner.load(std::memory_order_acquire) == owner;
  }

  /// Whether the process that claimed a slot, by its turn word, lives; as alive().
  bool claimer_lives(std::uint64_t turn) noexcept { return alive(claimer(turn)); }
  /// The same as alive_now().
  bool claimer_lives_now(std::uint64_t turn) noexcept { return alive_now(claimer(turn)); }

  /// Waits until no queue pair of a process that lives is at work on queue pairs or memory of
  /// `owner`; false where one still is after so many nanoseconds, stopped in the middle. His own
  /// are, for what they send and read.
  bool visitors_leave(std::uint32_t owner, std::int64_t within) const noexcept {
    const std::int64_t latest = coarse_now() + within;
    const auto visits = [&](const queue_pair_entry& by) {
      if (by.visiting.load(std::memory_order_seq_cst) == 0) return false;
      const std::uint32_t visitor = by.owner.load();
      const std::uint32_t peer = by.peer.load();
      const bool may =
          by.type.load() == IBV_QPT_UD || visitor == owner ||
          (peer != none && segment_->queue_pairs[peer % queue_pair_limit].owner == owner);
      return may && alive_now(visitor);
    };
    for (const queue_pair_entry& each : segment_->queue_pairs) {
      while (visits(each)) {
        if (coarse_now() > latest) return false;
        std::this_thread::yield();
      }
    }
    return true;
  }

  /// Nanoseconds of a clock that is cheap to read and a few milliseconds coarse.
  static std::int64_t coarse_now() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

 private:
  struct mapping {
    std::uint32_t generation = 0;
    std::byte* base = nullptr;
    std::size_t length = 0;
  };

  fabric() = default;

  /// The owner number of the process that claimed a slot; 0 when it is on the fabric no more.
  std::uint32_t claimer(std::uint64_t turn) const noexcept {
    const std::uint32_t place = (claimer_of(turn) & 0x7f) - 1;
    if (place >= process_limit) return 0;
    const std::uint32_t owner = segment_->processes[place].owner.load(std::memory_order_acquire);
    return claimer_tag(owner) == claimer_of(turn) ? owner : 0;
  }

  result<void> enter() {
    if (!file_.mark_presence(F_RDLCK))
      return system_failure(errno, "cannot enter the fabric " + path());
    for (std::uint32_t place = 0; place < process_limit; ++place) {
      process_entry& entry = segment_->processes[place];
      if (entry.owner.load() != 0) continue;
      const auto pid = static_cast<std::uint32_t>(::getpid());
      const std::optional<std::uint64_t> since = started(pid);
      if (!since) return system_failure(errno, "cannot enter the fabric " + path());
      entry.pid.store(pid);
      entry.started.store(*since);
      me_ = (segment_->places_taken[place].fetch_add(1) + 1) << 8 | (place + 1);
      entry.seal.store(seal_of(me_, pid, *since));
      entry.owner.store(me_, std::memory_order_release);
      return success();
    }
    return full("processes", process_limit);
  }

  /// Takes back what dead processes left. Under the lock.
  void reclaim() noexcept {
    for (process_entry& each : segment_->processes) {
      const std::uint32_t owner = each.owner.load();
      if (owner != 0 && !lives(each)) abandon(owner);
    }
  }

  /// Gives back all that a process has, itself last, once nobody is at work on it: what is finished
  /// there would land with its next owner. Where somebody does not end, all of it is left to be
  /// taken back later. Under the lock.
  void abandon(std::uint32_t owner) noexcept {
    const auto each_of = [owner](auto& table, auto&& apply) {
      for (auto& each : table) {
        if (each.owner.load() == owner) apply(each);
      }
    };
    each_of(segment_->queue_pairs, [](queue_pair_entry& each) {
      each.state.store(IBV_QPS_RESET);
      each.number.store(0);
    });
    if (!visitors_leave(owner, 100'000'000)) {
      // An entry without a seal is a dead process's, also where its own end is what this is.
      if (place_of(owner) < process_limit) segment_->processes[place_of(owner)].seal.store(0);
      return;
    }
    each_of(segment_->queue_pairs, [](queue_pair_entry& each) {
      each.visiting.store(0);
      each.owner.store(0);
    });
    const auto give_back = [&](auto& table) {
      each_of(table, [](auto& each) {
        each.ring.seal.store(0);
        each.generation.fetch_add(1);
        each.owner.store(0);
      });
    };
    each_of(segment_->regions, [](region_entry& each) {
      if (each.generation.load() % 2 == 1) each.generation.fetch_add(1);
      each.owner.store(0);
    });
    give_back(segment_->completion_queues);
    give_back(segment_->receive_queues);
    for (std::uint32_t index = 0; index < arena_limit; ++index) {
      arena_entry& each = segment_->arenas[index];
      if (each.owner.load() != owner) continue;
      ::unlink(arena_path(index, each.generation.load()).data());
      ::unlink(arena_path(index, each.generation.load() + 1).data());
      each.generation.fetch_add(2);
      each.owner.store(0);
    }
    const std::uint32_t place = place_of(owner);
    if (place < process_limit) segment_->processes[place].owner.store(0, std::memory_order_release);
  }

  std::array<char, 128> arena_path(std::uint32_t index, std::uint32_t generation) const noexcept {
    std::array<char, 128> made{};
    std::snprintf(made.data(), made.size(), "%s.%u-%u", path().c_str(), index, generation);
    return made;
  }

  mapping map_arena(std::uint32_t index, std::uint32_t generation) const noexcept {
    const int file = ::open(arena_path(index, generation).data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return {};
    struct stat found{};
    mapping made;
    if (::fstat(file, &found) == 0 && found.st_uid == ::geteuid() && found.st_size > 0) {
      const auto length = static_cast<std::size_t>(found.st_size);
      void* base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (base != MAP_FAILED) made = {generation, static_cast<std::byte*>(base), length};
    }
    ::close(file);
    return made;
  }

  static void unmap(const mapping& of) noexcept {
    if (of.base != nullptr) ::munmap(of.base, of.length);
  }

  /// A list of mappings that are to be unmapped.
  struct retired {
    mapping of;
    retired* next;
  };
  static void unmap_all(retired*& list) noexcept {
    while (list != nullptr) {
      unmap(list->of);
      delete std::exchange(list, list->next);
    }
  }

  /// A mapping as reach() reads it without a lock: the stamp is 0 while the rest changes.
  struct known_mapping {
    std::atomic<std::uint64_t> stamp{0};
    std::atomic<std::byte*> base{nullptr};
    std::atomic<std::size_t> length{0};
  };
  static constexpr std::uint64_t stamp_of(std::uint32_t generation) noexcept {
    return std::uint64_t{generation} + 1;
  }
  mapping known(std::uint32_t arena) const noexcept {
    return {0, known_[arena].base.load(), known_[arena].length.load()};
  }
  void remember(std::uint32_t arena, const mapping& made) noexcept {
    if (made.base == nullptr) return;
    known_[arena].base = made.base;
    known_[arena].length = made.length;
    known_[arena].stamp.store(stamp_of(made.generation), std::memory_order_release);
  }

  [[gnu::cold, gnu::noinline]] std::byte* reach_anew(const arena_name& of,
                                                     std::uint64_t needed) noexcept {
    const auto [arena, generation] = of;
    known_mapping& known = known_[arena];
    const std::scoped_lock held{mapping_};
    if (known.stamp.load() != stamp_of(generation)) {
      retire(arena);
      remember(arena, map_arena(arena, generation));
    }
    const bool fits = known.stamp.load() == stamp_of(generation) && needed <= known.length.load();
    return fits ? known.base.load() : nullptr;
  }

  /// Unmaps as soon as each queue pair of this process that was at work, and could still use it,
  /// has been seen not to be: either it sees the stamp gone, or its lock is seen here.
  void retire(std::uint32_t arena) noexcept {
    if (known_[arena].base.load() != nullptr) {
      // Without memory for this it stays mapped, which harms nobody.
      if (auto* const made = new (std::nothrow) retired{known(arena), retired_}; made != nullptr)
        retired_ = made;
      known_[arena].stamp = 0;
      known_[arena].base = nullptr;
      known_[arena].length = 0;
    }
    std::erase_if(at_work_, [&](std::uint32_t place) { return !locks_[place].is_held(); });
    if (!at_work_.empty()) return;
    unmap_all(leaving_);
    leaving_ = std::exchange(retired_, nullptr);
    for (std::uint32_t place = 0; leaving_ != nullptr && place < queue_pair_limit; ++place) {
      if (locks_[place].is_held()) at_work_.push_back(place);
    }
    if (at_work_.empty()) unmap_all(leaving_);
  }

  segment_file file_;
  segment* segment_ = nullptr;  ///< file_'s
  std::uint32_t me_ = 0;
  pid_t maker_ = ::getpid();
  std::mutex mapping_;
  std::unique_ptr<known_mapping[]> known_{new known_mapping[arena_limit]};
  retired* retired_ = nullptr;
  retired* leaving_ = nullptr;          ///< retired before those, and waited for
  std::vector<std::uint32_t> at_work_;  ///< the queue pairs that they are waited for
  std::unique_ptr<work_lock[]> locks_{new work_lock[queue_pair_limit]};
  std::array<std::atomic<std::int64_t>, process_limit> seen_{};
  std::array<std::atomic<std::uint32_t>, process_limit> pids_{};  ///< as they were seen
};

}  // namespace verbena::soft
