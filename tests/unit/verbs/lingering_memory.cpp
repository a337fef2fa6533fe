// SPDX-License-Identifier: BSL-1.0
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include <verbena/verbs/lingering_memory.hpp>

#include "catch.hpp"

namespace vb = verbena;

using vb::work_queue_positions;
using vb::verbs::lingering_memory;

namespace {

/// Memory whose end can be seen.
std::pair<lingering_memory::memory, std::weak_ptr<const void>> some() {
  auto held = std::make_shared<int>(1);
  std::weak_ptr<const void> seen = held;
  return {std::move(held), std::move(seen)};
}

void retire(work_queue_positions& queue, std::uint32_t requests) {
  queue.retire(static_cast<std::uint16_t>(queue.retired + requests - 1));
}

}  // namespace

TEST_CASE("memory that nothing uses goes at once") {
  lingering_memory lingering;
  work_queue_positions queue{.capacity = 8};
  lingering.add(queue);
  queue.post(3);
  retire(queue, 3);
  CHECK_FALSE(lingering.in_use());
  auto [memory, seen] = some();
  lingering.keep(std::move(memory));
  CHECK(seen.expired());
}

TEST_CASE("memory stays until all that was posted before has retired, in every queue") {
  lingering_memory lingering;
  // One of them about to count past 2^32.
  work_queue_positions first{.posted = 0xffff'fffe, .retired = 0xffff'fffe, .capacity = 8};
  work_queue_positions second{.capacity = 8};
  lingering.add(first);
  lingering.add(second);
  first.post(4);
  second.post(2);
  CHECK(lingering.in_use());
  auto [memory, seen] = some();
  lingering.keep(std::move(memory));
  first.post(2);

  retire(second, 2);
  retire(first, 3);
  lingering.collect();
  CHECK_FALSE(seen.expired());
  retire(first, 1);
  CHECK_FALSE(seen.expired());
  lingering.collect();
  CHECK(seen.expired());
  CHECK(lingering.in_use());
}

TEST_CASE("memory does not wait for a queue that is gone") {
  lingering_memory lingering;
  work_queue_positions gone{.capacity = 8};
  work_queue_positions stays{.capacity = 8};
  lingering.add(gone);
  lingering.add(stays);
  gone.post(1);
  stays.post(1);
  auto [memory, seen] = some();
  lingering.keep(std::move(memory));
  lingering.remove(gone);
  CHECK_FALSE(seen.expired());
  lingering.remove(stays);
  CHECK(seen.expired());
  CHECK_FALSE(lingering.in_use());
}

TEST_CASE("memory that goes may hold the last of what it lies in") {
  auto lingering = std::make_shared<lingering_memory>();
  work_queue_positions queue{.capacity = 8};
  lingering->add(queue);
  queue.post(1);
  lingering->keep(lingering);
  const std::weak_ptr<lingering_memory> seen = lingering;
  retire(queue, 1);
  lingering_memory& here = *lingering;
  const auto holder = std::move(lingering);
  here.collect();
  CHECK(seen.use_count() == 1);
}

TEST_CASE("memory comes and goes while another thread posts and polls") {
  lingering_memory lingering;
  work_queue_positions queue{.capacity = 8};
  lingering.add(queue);
  std::atomic<bool> done{false};
  std::thread owner{[&] {
    while (!done) {
      queue.post(4);
      retire(queue, 4);
    }
  }};
  std::weak_ptr<const void> last;
  for (int i = 0; i < 2000; ++i) {
    auto [memory, seen] = some();
    lingering.keep(std::move(memory));
    last = seen;
  }
  done = true;
  owner.join();
  lingering.collect();
  CHECK(last.expired());
}
