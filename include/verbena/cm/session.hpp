// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <utility>

#include <verbena/cm/await.hpp>

namespace verbena {

/// What remains of setup::cm while a connection lives: its id, on an event channel of its own,
/// which learns when the peer closes or its kernel says that it is gone. Move-only.
class cm_session {
 public:
  static constexpr std::chrono::milliseconds every{2};

  cm_session() = default;
  explicit cm_session(verbs::cm_id connected) noexcept : id_{std::move(connected)} {}

  cm_session(cm_session&&) noexcept = default;
  cm_session& operator=(cm_session&& other) noexcept {
    cm_session before{std::move(*this)};
    id_ = std::move(other.id_);
    gone_ = std::exchange(other.gone_, false);
    told_ = std::exchange(other.told_, false);
    return *this;
  }
  ~cm_session() {
    if (auto told = disconnect(); !told) verbs::destroy_failure.load()(told.error());
  }

  int descriptor() const noexcept {
    return id_.native_handle() == nullptr ? -1 : id_.channel().descriptor();
  }

  bool peer_gone() {
    if (id_.native_handle() == nullptr) return gone_;
    for (;;) {
      auto event = verbs::cm_event::take(id_.channel());
      if (event && !event.value()) return gone_;
      if (event && !cm::failure_of(*event.value())) continue;
      gone_ = true;
      // The peer's CM asks again until it is answered.
      (void)disconnect();
      if (!event) return true;
    }
  }

  /// Again, or after the peer has: does nothing.
  result<void> disconnect() {
    if (id_.native_handle() == nullptr || std::exchange(told_, true)) return success();
    auto told = id_.disconnect();
    const auto is_over = [](const error& value) {
      return value == std::errc::invalid_argument || value == std::errc::not_connected;
    };
    if (told || gone_ || is_over(told.error())) return success();
    return told;
  }

 private:
  verbs::cm_id id_;
  bool gone_ = false;
  bool told_ = false;
};

}  // namespace verbena
