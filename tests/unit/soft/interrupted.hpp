// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "../../catch.hpp"

namespace soft_test {

/// Memory, when its second page is first touched something is done: what another thread may do just
/// then. One at a time.
class interrupting_memory {
 public:
  explicit interrupting_memory(std::function<void()> act) {
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(static_cast<void*>(base_) != MAP_FAILED);
    current() = this;
    act_ = std::move(act);
    struct sigaction on{};
    on.sa_handler = [](int) { current()->touched(); };
    REQUIRE(::sigaction(SIGSEGV, &on, &before_) == 0);
  }
  ~interrupting_memory() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(base_, 2 * page());
  }
  interrupting_memory(const interrupting_memory&) = delete;
  interrupting_memory& operator=(const interrupting_memory&) = delete;

  std::byte* second_page() const { return base_ + page(); }
  void arm() { ::mprotect(second_page(), page(), PROT_NONE); }
  bool has_been_touched() const { return touched_; }

 private:
  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  static interrupting_memory*& current() {
    static interrupting_memory* it = nullptr;
    return it;
  }
  void touched() {
    ::sigaction(SIGSEGV, &before_, nullptr);  // one of another kind ends the test
    ::mprotect(second_page(), page(), PROT_READ | PROT_WRITE);
    touched_ = true;
    act_();
  }

  std::byte* base_ = nullptr;
  std::function<void()> act_;
  struct sigaction before_{};
  bool touched_ = false;
};

}  // namespace soft_test
