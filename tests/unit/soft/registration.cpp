// SPDX-License-Identifier: BSL-1.0
#include <sys/mman.h>

#include <cerrno>

#include "side.hpp"

using namespace soft_test;

namespace {

constexpr std::size_t page = 4096;

/// Three pages: one that can be written, one that can be read, and one that is not there.
struct pages {
  pages() {
    void* const made =
        ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(made != MAP_FAILED);
    first = static_cast<std::byte*>(made);
    REQUIRE(::mprotect(first + page, page, PROT_READ) == 0);
    REQUIRE(::munmap(first + 2 * page, page) == 0);
  }
  ~pages() { ::munmap(first, 2 * page); }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;

  std::byte* first = nullptr;
};

/// The errno of registering; 0 where it succeeds.
int registering(const side& on, std::byte* from, std::size_t length, int access) {
  errno = 0;
  ibv_mr* const made = on.calls.reg_mr(on.domain, from, length, access);
  const int number = errno;
  if (made == nullptr) return number;
  CHECK(on.calls.dereg_mr(made) == 0);
  return 0;
}

}  // namespace

TEST_CASE("soft: memory is registered if it is there, and may be written if that is asked for",
          "[soft]") {
  const side on{fabric_name()};
  const pages memory;
  constexpr int writes = IBV_ACCESS_LOCAL_WRITE;
  CHECK(registering(on, memory.first, page, writes) == 0);
  CHECK(registering(on, memory.first, 2 * page, IBV_ACCESS_REMOTE_READ) == 0);
  CHECK(registering(on, memory.first + page + 1, 10, 0) == 0);
  CHECK(registering(on, memory.first + page, page, writes) == EFAULT);
  CHECK(registering(on, memory.first, page + 1, writes) == EFAULT);
  CHECK(registering(on, memory.first + 2 * page, 1, 0) == EFAULT);
  CHECK(registering(on, memory.first + page, page + 1, 0) == EFAULT);
  CHECK(registering(on, memory.first, 3 * page, 0) == EFAULT);
  CHECK(registering(on, nullptr, page, writes) == EFAULT);
}
