// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

namespace verbena::soft {

/// Takes back a step of making something, unless all of it has been made: keep().
template <class Act>
class [[nodiscard]] undo {
 public:
  explicit undo(Act act) noexcept : act_{std::move(act)} {}
  ~undo() {
    if (!kept_) act_();
  }
  undo(const undo&) = delete;
  undo& operator=(const undo&) = delete;

  void keep() noexcept { kept_ = true; }

 private:
  Act act_;
  bool kept_ = false;
};

}  // namespace verbena::soft
