// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "../../catch.hpp"

namespace soft_test {

/// Another process, and words from each to the other. It must be made before this process opens a
/// device: a device does not survive a fork.
class child {
 public:
  explicit child(const std::function<void(child&)>& work) {
    REQUIRE(::pipe(up_.data()) == 0);
    REQUIRE(::pipe(down_.data()) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      std::swap(up_, down_);
      is_child_ = true;
      const auto only = [&]() noexcept { work(*this); };  // nothing of the tests after it
      only();
      for (;;) ::pause();
    }
  }
  ~child() {
    end();
    for (const int each : {up_[0], up_[1], down_[0], down_[1]}) ::close(each);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  void say(std::uint64_t word) const { (void)!::write(down_[1], &word, sizeof word); }
  /// What the other has said; ends the child when nothing comes.
  std::uint64_t hear() const {
    std::uint64_t said = 0;
    pollfd look{up_[0], POLLIN, 0};
    const bool came =
        ::poll(&look, 1, 20'000) == 1 && ::read(up_[0], &said, sizeof said) == sizeof said;
    if (!came && is_child_) ::_exit(2);
    REQUIRE(came);
    return said;
  }
  /// Kills it, and waits for its end.
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  /// How it has ended of itself.
  int wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  std::array<int, 2> up_{};
  std::array<int, 2> down_{};
  pid_t process_ = 0;
  bool is_child_ = false;
};

}  // namespace soft_test
