// SPDX-License-Identifier: BSL-1.0
#include <verbena/soft/mapped_memory.hpp>

#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

TEST_CASE("soft: memory is unmapped though some queue pair is always at work", "[soft]") {
  side on{fabric_name()};
  soft::fabric& shared = *context::of(on.native).fabric;
  soft::fabric::work_lock& first = shared.work_on(0);
  soft::fabric::work_lock& second = shared.work_on(1);
  const soft::fabric::mapped_arena given = shared.allocate(4096).value();
  const soft::fabric::mapped_arena other = shared.allocate(4096).value();
  const auto is_mapped = [&] {
    return soft::mapped_memory{}.holds(reinterpret_cast<std::uintptr_t>(given.base), 4096, true);
  };
  first.lock();
  shared.release(given.name);
  CHECK(is_mapped());  // whoever has the lock may be writing to it
  second.lock();
  first.unlock();
  shared.release(other.name);
  CHECK_FALSE(is_mapped());
  second.unlock();
}
