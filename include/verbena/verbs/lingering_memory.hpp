// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <verbena/verbs/memory_uses.hpp>
#include <verbena/verbs/work_queue_positions.hpp>

namespace verbena::verbs {

/// The memory of a protection domain whose owners are gone while requests that were posted may
/// still use it. Any thread.
class lingering_memory {
 public:
  using memory = std::shared_ptr<const void>;

  /// A work queue of the domain, from when it is made until its queue pair is destroyed.
  void add(const work_queue_positions& queue) {
    const std::lock_guard guard{mutex_};
    queues_.push_back(&queue);
  }
  void remove(const work_queue_positions& queue) noexcept {
#ifndef NDEBUG
    memory_uses::of_process().remove(queue);
#endif
    {
      const std::lock_guard guard{mutex_};
      std::erase(queues_, &queue);
      for (kept& each : kept_) {
        std::erase_if(each.uses, [&](const use& of) { return of.queue == &queue; });
      }
    }
    collect();
  }

  /// Whether anything that was posted has not retired yet.
  bool in_use() const {
    const std::lock_guard guard{mutex_};
    return std::ranges::any_of(queues_, [](const work_queue_positions* each) {
      return !each->retired_before(each->end());
    });
  }

  /// Lets go of `held` once everything has retired that was posted before this call, to whichever
  /// queue: at once where that is so, else in a later call of this class.
  void keep(memory held) {
    std::vector<use> uses;
    {
      const std::lock_guard guard{mutex_};
      for (const work_queue_positions* each : queues_) {
        const use of{each, each->end()};
        if (!of.over()) uses.push_back(of);
      }
      if (!uses.empty()) kept_.push_back({std::move(held), std::move(uses)});
    }
    collect();
  }

  /// Lets go of what nobody uses any more.
  void collect() noexcept {
    std::vector<kept> unused;
    {
      const std::lock_guard guard{mutex_};
      const auto is_used = [](kept& each) {
        std::erase_if(each.uses, [](const use& of) { return of.over(); });
        return !each.uses.empty();
      };
      const auto first_unused = std::partition(kept_.begin(), kept_.end(), is_used);
      unused.assign(std::move_iterator{first_unused}, std::move_iterator{kept_.end()});
      kept_.erase(first_unused, kept_.end());
    }
    // Its destructors run here: not under the lock, which they may need.
  }

 private:
  struct use {
    const work_queue_positions* queue;
    std::uint32_t end;  ///< of what was posted
    bool over() const noexcept { return queue->retired_before(end); }
  };
  struct kept {
    memory held;
    std::vector<use> uses;
  };

  mutable std::mutex mutex_;
  std::vector<const work_queue_positions*> queues_;
  std::vector<kept> kept_;
};

}  // namespace verbena::verbs
