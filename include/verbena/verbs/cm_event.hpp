// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <verbena/verbs/cm_id.hpp>

namespace verbena::verbs {

/// An event of RDMA CM, copied and acknowledged: no id waits for it any more
/// (rdma_get_cm_event(3)).
struct cm_event {
  /// An rdma_cm_event_type, or one of a library newer than the header this was compiled with.
  int type = -1;
  /// A negative errno, or for REJECTED on InfiniBand and RoCE a reason (1 and above).
  int status = 0;
  /// Reads and atomics, as this end sees them: how many the peer will ask, and will answer.
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t length = 0;
  std::array<std::byte, 255> data{};
  cm_id request;  ///< of CONNECT_REQUEST: the new id

  /// Padded with zeros on InfiniBand and RoCE: longer than what the peer gave.
  std::span<const std::byte> private_data() const noexcept { return std::span{data}.first(length); }

  /// The next event, if there is one. Never blocks.
  static result<std::optional<cm_event>> take(const cm_event_channel& channel) {
    const cm_table& calls = *channel.table().cm;
    rdma_cm_event* native = nullptr;
    errno = 0;
    if (const int number = minus_one_errno(calls.get_event(channel.native_handle(), &native));
        number != 0) {
      if (number == EAGAIN || number == EINTR) return std::optional<cm_event>{};
      return system_failure(number, "cannot take an event of RDMA CM");
    }
    const std::unique_ptr<rdma_cm_event, int (*)(rdma_cm_event*)> acknowledged{native,
                                                                               calls.ack_event};
    cm_event copy;
    static_assert(sizeof native->event == sizeof copy.type);
    std::memcpy(&copy.type, &native->event, sizeof copy.type);
    copy.status = native->status;
    if (copy.type == RDMA_CM_EVENT_CONNECT_REQUEST)
      copy.request = cm_id::adopt(native->id, channel);
    if (has_parameters(copy.type)) {
      const rdma_conn_param& from = native->param.conn;
      copy.responder_resources = from.responder_resources;
      copy.initiator_depth = from.initiator_depth;
      if (from.private_data != nullptr) {
        copy.length = from.private_data_len;
        std::memcpy(copy.data.data(), from.private_data, copy.length);
      }
    }
    return std::optional{std::move(copy)};
  }

  /// Waits for the next event, or until `stop` is readable (-1: none). Errors: errc::timed_out,
  /// errc::stopped, errno.
  static result<cm_event> wait(const cm_event_channel& channel,
                               std::chrono::steady_clock::time_point deadline, int stop) {
    for (;;) {
      std::array<pollfd, 2> watched{pollfd{channel.descriptor(), POLLIN, 0},
                                    pollfd{stop, POLLIN, 0}};
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      const int ready = ::poll(watched.data(), watched.size(),
                               static_cast<int>(std::clamp<std::int64_t>(
                                   left.count(), 0, std::numeric_limits<int>::max())));
      if (ready < 0 && errno != EINTR) return system_failure(errno, "cannot wait for RDMA CM");
      if (watched[1].revents != 0) return error{errc::stopped, {}};
      BOOST_OUTCOME_TRY(auto event, take(channel));
      if (event) return std::move(*event);
      if (ready == 0 && left.count() <= 0) return error{errc::timed_out, {}};
    }
  }

 private:
  static constexpr bool has_parameters(int of) noexcept {
    return of == RDMA_CM_EVENT_CONNECT_REQUEST || of == RDMA_CM_EVENT_CONNECT_RESPONSE ||
           of == RDMA_CM_EVENT_ESTABLISHED || of == RDMA_CM_EVENT_REJECTED;
  }
};

}  // namespace verbena::verbs
