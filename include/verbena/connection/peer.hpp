// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <utility>

#include <verbena/verbs/address_handle.hpp>

namespace verbena {

/// Whom a datagram is for: the way there, a queue pair, its queue key. Made by connection::peer()
/// of a connection on transport::ud and used by any such connection in the same protection domain.
/// Move-only. It may go while requests that name it are outstanding, but must stay where it is
/// until they are posted. Any number of threads may post to it.
class peer {
 public:
  peer(verbs::address_handle way, std::uint32_t number, std::uint32_t queue_key,
       std::uint32_t max_message, std::uint32_t domain) noexcept
      : way_{std::move(way)},
        handle_{way_.native_handle()},
        number_{number},
        queue_key_{queue_key},
        max_message_{max_message},
        domain_{domain} {}

  /// Of its queue pair.
  std::uint32_t number() const noexcept { return number_; }
  std::uint32_t queue_key() const noexcept { return queue_key_; }
  /// The longest message to it, in bytes.
  std::uint32_t max_message() const noexcept { return max_message_; }
  ibv_ah* native_handle() const noexcept { return handle_; }

  /// The protection domain it can be used in; 0, of none, once moved from.
  std::uint32_t domain() const noexcept { return domain_; }

  peer(peer&& other) noexcept
      : way_{std::move(other.way_)},
        handle_{std::exchange(other.handle_, nullptr)},
        number_{other.number_},
        queue_key_{other.queue_key_},
        max_message_{other.max_message_},
        domain_{std::exchange(other.domain_, 0)} {}
  peer& operator=(peer&& other) noexcept {
    way_ = std::move(other.way_);
    handle_ = std::exchange(other.handle_, nullptr);
    number_ = other.number_;
    queue_key_ = other.queue_key_;
    max_message_ = other.max_message_;
    domain_ = std::exchange(other.domain_, 0);
    return *this;
  }
  ~peer() = default;

 private:
  verbs::address_handle way_;
  ibv_ah* handle_;  // beside the rest of what a post reads
  std::uint32_t number_;
  std::uint32_t queue_key_;
  std::uint32_t max_message_;
  std::uint32_t domain_;
};

}  // namespace verbena
