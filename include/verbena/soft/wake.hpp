// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <verbena/soft/objects.hpp>

/// Waking a sleeper of another process: a datagram to a socket that its channel's descriptor
/// watches. The datagram says nothing; what there is to do stands in the segment, so a lost one
/// (the socket is full, its reader is about to wake) loses nothing.
namespace verbena::soft {

/// The number under which a device is woken for its asynchronous events; channels have others.
inline constexpr std::uint32_t async_number = 0;

struct wake_address {
  sockaddr_un name{};
  socklen_t length = 0;

  wake_address(const fabric& on, std::uint32_t owner, std::uint32_t number) noexcept {
    name.sun_family = AF_UNIX;
    const int written =
        std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "verbena-%llx-%x-%x",
                      static_cast<unsigned long long>(on.identity()), owner, number);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    static_cast<std::size_t>(written));
  }
};

inline void wake(context& here, std::uint32_t owner, std::uint32_t number) noexcept {
  const wake_address to{*here.fabric, owner, number};
  const char nothing = 0;
  (void)::sendto(here.wake_sender, &nothing, 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&to.name), to.length);
}

/// Gives a queue's event if it is armed for what has been put into it.
inline void fire(context& here, completion_queue_entry& entry, bool is_solicited) noexcept {
  std::uint32_t armed = entry.armed.load(std::memory_order_seq_cst);
  const bool wanted = armed == any || armed == fired_any ||
                      (is_solicited && (armed == solicited || armed == fired_solicited));
  if (wanted && entry.armed.compare_exchange_strong(armed, fired)) {
    wake(here, entry.owner.load(std::memory_order_relaxed),
         entry.wake.load(std::memory_order_relaxed));
  }
}

}  // namespace verbena::soft
