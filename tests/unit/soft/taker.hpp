// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "child.hpp"
#include "taking.hpp"

namespace soft_test {

/// Another process that takes a receive and dies before it has done with it. It must be made before
/// this process opens a device, and joins the fabric when it is told to take.
class taker {
 public:
  using step = void (*)(const side&, std::uint32_t, const verbena::soft::taken_receive&);

  /// How far it comes: it has taken the receive, and `then`, if any, has been done with it.
  explicit taker(const std::string& fabric, step then = nullptr)
      : process_{[&fabric, then](child& parent) {
          const auto number = static_cast<std::uint32_t>(parent.hear());
          const side on{fabric};
          verbena::soft::taken_receive taken;
          if (take(on, number, taken) != verbena::soft::taking::got) ::_exit(3);
          if (then != nullptr) then(on, number, taken);
          parent.say(1);
          parent.hear();
        }} {}

  /// Of the queue pair of that number. Returns when the process is gone.
  void take_and_die(std::uint32_t number) {
    process_.say(number);
    REQUIRE(process_.hear() == 1);
    process_.end();
  }

 private:
  child process_;
};

}  // namespace soft_test
