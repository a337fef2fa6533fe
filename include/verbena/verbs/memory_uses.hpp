// SPDX-License-Identifier: BSL-1.0
#pragma once

#ifndef NDEBUG

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>

#include <verbena/verbs/work_queue_positions.hpp>

namespace verbena::verbs {

/// Which registered memory the requests outstanding use: kept in builds with assertions, so that
/// memory of the program's own that is let go too early is found there. Any thread.
class memory_uses {
 public:
  /// A piece of the request at a position of its queue.
  struct use {
    std::uint32_t position;
    std::uint32_t domain;
    std::uint32_t lkey;
  };

  static memory_uses& of_process() {
    static memory_uses all;
    return all;
  }

  /// What is about to be posted. What of it does not enter is forgotten by the next call.
  void add(const work_queue_positions& queue, std::span<const use> posted) {
    const std::lock_guard guard{mutex_};
    std::deque<use>& of = queues_[&queue];
    while (!of.empty() && queue.retired_before(of.front().position + 1)) of.pop_front();
    while (!of.empty() && !has_entered(queue, of.back())) of.pop_back();
    of.insert(of.end(), posted.begin(), posted.end());
  }

  void remove(const work_queue_positions& queue) {
    const std::lock_guard guard{mutex_};
    queues_.erase(&queue);
  }

  std::size_t count(std::uint32_t domain, std::uint32_t lkey) {
    const std::lock_guard guard{mutex_};
    std::ptrdiff_t found = 0;
    for (const auto& queue : queues_) {
      found += std::ranges::count_if(queue.second, [&](const use& each) {
        return each.lkey == lkey && each.domain == domain && has_entered(*queue.first, each) &&
               !queue.first->retired_before(each.position + 1);
      });
    }
    return static_cast<std::size_t>(found);
  }

  /// Ends the process when requests outstanding use the memory of this key.
  void expect_none(std::uint32_t domain, std::uint32_t lkey) {
    const std::size_t left = count(domain, lkey);
    if (left == 0) return;
    std::fprintf(stderr,
                 "verbena: registered memory (lkey 0x%x) is let go while %zu pieces of requests "
                 "that have not completed lie in it\n",
                 lkey, left);
    std::abort();
  }

 private:
  static bool has_entered(const work_queue_positions& queue, const use& each) {
    return static_cast<std::int32_t>(each.position - queue.end()) < 0;
  }

  std::mutex mutex_;
  std::unordered_map<const work_queue_positions*, std::deque<use>> queues_;
};

}  // namespace verbena::verbs

#endif
