// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <system_error>

namespace verbena {

/// What verbena itself can say went wrong. What the system said stays in std::generic_category
/// with its positive errno, and what a work request reported in status_category().
enum class errc {
  no_device = 1,     ///< no RDMA device is present, or none has the name asked for
  not_supported,     ///< the device can not do what was asked
  capacity,          ///< more was asked than the device, queue or table has
  no_usable_gid,     ///< no pair of GIDs fits both ends
  would_block,       ///< the queue is full: poll, then post again
  broken,            ///< the queue pair has failed, nothing can be posted
  foreign_domain,    ///< the memory is registered in another protection domain
  message_too_long,  ///< longer than one message of this connection
  empty_piece,       ///< a piece of no bytes, which adapters would take for 2^31
  too_many_pieces,   ///< more pieces than the device granted for one request
  outside_region,    ///< beyond the end of the remote region
  no_right,          ///< the peer's region does not grant the right asked for
  timed_out,         ///< the deadline passed
  stopped,           ///< stop() was called
  incomplete_drain,  ///< requests were still outstanding when the time for closing was over
  wire_length,       ///< descriptor: truncated, or longer than its format
  wire_magic,        ///< descriptor: not verbena's
  wire_version,      ///< descriptor: of another version
  wire_value,        ///< descriptor: a field has no meaning
  mismatch,          ///< the two ends do not fit (transport, link layer, device)
  rejected,          ///< the peer's program refused the connection
  no_listener,       ///< nobody listens at that address
  stale_connection,  ///< the peer still holds an earlier connection of this queue pair number
  unreachable,       ///< the peer does not answer
  disconnected,      ///< the peer closed, or died
  misaligned,        ///< an atomic on an address that is no multiple of 8
  inline_too_long,   ///< unregistered memory longer than what the queue pair takes inline
  short_receive,     ///< a receive on transport::ud without room for the 40 bytes in front
  other_connection,  ///< prepared for another connection
  moved_from,        ///< the object has been moved from or closed
};

/// The category "verbena". Thread safe; lives for the whole program.
inline const std::error_category& category() noexcept {
  static const struct final : std::error_category {
    const char* name() const noexcept override { return "verbena"; }
    std::string message(int value) const override {
      switch (static_cast<errc>(value)) {
        case errc::no_device: return "no such RDMA device";
        case errc::not_supported: return "not supported by the device";
        case errc::capacity: return "capacity exceeded";
        case errc::no_usable_gid: return "no usable GID";
        case errc::would_block: return "queue full";
        case errc::broken: return "connection broken";
        case errc::foreign_domain: return "memory of another protection domain";
        case errc::message_too_long: return "message too long";
        case errc::empty_piece: return "a piece of memory of no bytes";
        case errc::too_many_pieces: return "too many pieces of memory";
        case errc::outside_region: return "outside the remote region";
        case errc::no_right: return "right not granted";
        case errc::timed_out: return "timed out";
        case errc::stopped: return "stopped";
        case errc::incomplete_drain: return "requests still outstanding";
        case errc::wire_length: return "descriptor has the wrong length";
        case errc::wire_magic: return "not a verbena descriptor";
        case errc::wire_version: return "descriptor of another version";
        case errc::wire_value: return "descriptor field out of range";
        case errc::mismatch: return "the two ends do not fit";
        case errc::rejected: return "rejected by the peer";
        case errc::no_listener: return "no listener";
        case errc::stale_connection: return "stale connection";
        case errc::unreachable: return "unreachable";
        case errc::disconnected: return "disconnected";
        case errc::misaligned: return "address not a multiple of 8";
        case errc::inline_too_long: return "too long to be sent inline";
        case errc::short_receive: return "receive shorter than what stands in front of a message";
        case errc::other_connection: return "prepared for another connection";
        case errc::moved_from: return "moved-from or closed object";
      }
      return "unknown error " + std::to_string(value);
    }
    std::error_condition default_error_condition(int value) const noexcept override {
      switch (static_cast<errc>(value)) {
        case errc::would_block: return std::errc::resource_unavailable_try_again;
        case errc::timed_out: return std::errc::timed_out;
        case errc::stopped: return std::errc::operation_canceled;
        case errc::not_supported: return std::errc::not_supported;
        case errc::message_too_long: return std::errc::message_size;
        case errc::disconnected: return std::errc::not_connected;
        case errc::rejected:
        case errc::no_listener: return std::errc::connection_refused;
        case errc::unreachable: return std::errc::host_unreachable;
        case errc::no_device: return std::errc::no_such_device;
        default: return {value, category()};
      }
    }
  } instance;
  return instance;
}

inline std::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), category()};
}

}  // namespace verbena

template <>
struct std::is_error_code_enum<verbena::errc> : std::true_type {};
