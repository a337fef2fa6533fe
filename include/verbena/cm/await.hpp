// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <string>

#include <verbena/cm/refusal.hpp>
#include <verbena/verbs/cm_event.hpp>

/// Events of RDMA CM as steps and failures of a connection.
namespace verbena::cm {

/// Why there is no connection, or none any longer, after `event`; nothing for events that end
/// none, unknown ones among them. The same in every state, so each event has a meaning in each.
inline std::optional<error> failure_of(const verbs::cm_event& event) {
  const int number = event.status < 0 ? -event.status : event.status;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      if (number == ETIMEDOUT) return error{errc::timed_out, {}};
      if (number == ENODEV) return system_failure(number, "no RDMA device has a way to it");
      return system_failure(number, {});
    case RDMA_CM_EVENT_CONNECT_ERROR: return system_failure(number, "the CM failed");
    case RDMA_CM_EVENT_UNREACHABLE: return error{errc::unreachable, {}};
    case RDMA_CM_EVENT_REJECTED:
      // iWARP gives an errno, where a reset is what rdma_reject does; the others a reason
      // (ib_cm.h).
      if (event.status == -ECONNREFUSED || event.status == 8) return error{errc::no_listener, {}};
      if (event.status == 4) return error{errc::timed_out, "the peer has given up"};
      if (event.status == 10) return error{errc::stale_connection, {}};
      if (event.status == -ECONNRESET || event.status == 28) {
        return refusal::read(event.private_data());
      }
      return error{errc::rejected, "by the peer's CM, status " + std::to_string(event.status)};
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: return error{errc::disconnected, {}};
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return error{errc::no_device, "the device was removed"};
    default: return std::nullopt;
  }
}

/// Waits for one of the events `wanted`. Errors: errc::timed_out, errc::stopped, that of an event
/// which says that it will not come; each with `step`.
result<verbs::cm_event> await(const verbs::cm_id& id,
                              std::chrono::steady_clock::time_point deadline, int stop,
                              const char* step, std::same_as<rdma_cm_event_type> auto... wanted) {
  for (;;) {
    auto event = verbs::cm_event::wait(id.channel(), deadline, stop);
    if (!event) return event.error().within(step);
    const bool expected = ((event.value().type == wanted) || ...);
    if (expected) return event;
    if (const auto failed = failure_of(event.value())) return failed->within(step);
  }
}

/// Of a step that failed: what an event that came meanwhile says, if it says more. iWARP tells of
/// a TCP connection that failed by errno.
inline error reason_of(const verbs::cm_id& id, const error& failed) {
  for (;;) {
    const auto event = verbs::cm_event::take(id.channel());
    if (!event || !event.value()) break;
    if (auto why = failure_of(*event.value())) return std::move(*why);
  }
  const auto code = failed.code();
  if (code == std::make_error_code(std::errc::connection_refused)) return {errc::no_listener, {}};
  if (code == std::make_error_code(std::errc::timed_out)) return {errc::unreachable, {}};
  if (code == std::make_error_code(std::errc::connection_reset)) return {errc::disconnected, {}};
  return failed;
}

}  // namespace verbena::cm
