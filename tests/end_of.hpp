// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>

#include "catch.hpp"

/// How a process ends that does `what`, and what it says on stderr.
template <class What>
std::pair<int, std::string> end_of(What&& what) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not Catch's report
    ::dup2(ends[1], 2);
    what();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 256> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return {status, said};
}
