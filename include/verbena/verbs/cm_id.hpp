// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <verbena/verbs/cm_event_channel.hpp>

namespace verbena::verbs {

/// Owner of an RDMA CM identifier: one end of a connection, or a listener (rdma_create_id(3)).
/// No queue pair is ever made on it; ours are connected through conn_param.qp_num. Destroying one
/// ends what it was doing: a pending request is rejected, a connection disconnected. Move-only;
/// keeps its event channel. Each call returns the errno, with what was being done.
class cm_id {
 public:
  cm_id() = default;

  static result<cm_id> create(const cm_event_channel& channel) {
    rdma_cm_id* native = nullptr;
    errno = 0;
    const int number = minus_one_errno(
        channel.table().cm->create_id(channel.native_handle(), &native, nullptr, RDMA_PS_TCP));
    BOOST_OUTCOME_TRY(checked(number, [] { return std::string{"cannot create an id"}; }));
    return adopt(native, channel);
  }

  /// Takes over the id of a connection request, whose events come on `channel`.
  static cm_id adopt(rdma_cm_id* native, const cm_event_channel& channel) {
    cm_id made;
    made.state_ = std::make_unique<state>(native, channel);
    return made;
  }

  result<void> bind(const sockaddr* to) const {
    return call("cannot bind", &cm_table::bind_addr, const_cast<sockaddr*>(to));
  }
  result<void> listen(int backlog) const {
    return call("cannot listen", &cm_table::listen, backlog);
  }
  result<void> resolve_address(const sockaddr* to, std::chrono::milliseconds timeout) const {
    return call("cannot resolve the address", &cm_table::resolve_addr, nullptr,
                const_cast<sockaddr*>(to), count(timeout));
  }
  result<void> resolve_route(std::chrono::milliseconds timeout) const {
    return call("cannot resolve the route", &cm_table::resolve_route, count(timeout));
  }
  result<void> connect(rdma_conn_param with) const {
    return call("cannot connect", &cm_table::connect, &with);
  }
  /// Tells the peer that the queue pair is ready, after CONNECT_RESPONSE.
  result<void> establish() const { return call("cannot establish", &cm_table::establish); }
  result<void> accept(rdma_conn_param with) const {
    return call("cannot accept", &cm_table::accept, &with);
  }
  result<void> reject(std::span<const std::byte> data) const {
    return call("cannot reject", &cm_table::reject, static_cast<const void*>(data.data()),
                static_cast<std::uint8_t>(data.size()));
  }
  result<void> disconnect() const { return call("cannot disconnect", &cm_table::disconnect); }

  /// What a queue pair needs for the next state, as far as the CM knows; adds to `mask`.
  result<ibv_qp_attr> attributes(ibv_qp_state next, int& mask) const {
    ibv_qp_attr found{};
    found.qp_state = next;
    BOOST_OUTCOME_TRY(call("cannot take the attributes of the queue pair from the CM",
                           &cm_table::init_qp_attr, &found, &mask));
    return found;
  }

  /// Lets its events come on another channel, those that are waiting too.
  result<void> migrate(const cm_event_channel& to) const {
    BOOST_OUTCOME_TRY(
        call("cannot move to another event channel", &cm_table::migrate_id, to.native_handle()));
    state_->channel = to.share();
    return success();
  }

  const cm_event_channel& channel() const noexcept { return state_->channel; }
  const sockaddr* source() const noexcept { return &native_handle()->route.addr.src_addr; }
  const sockaddr* destination() const noexcept { return &native_handle()->route.addr.dst_addr; }

  /// The device it is bound to; empty while it is bound to none. It is the CM's own context of
  /// that device, so the name is all that may be used of it.
  std::string device_name() const {
    const ibv_context* bound = native_handle()->verbs;
    return bound == nullptr ? std::string{} : bound->device->name;
  }
  std::uint8_t port() const noexcept { return native_handle()->port_num; }

  rdma_cm_id* native_handle() const noexcept { return state_ ? state_->id.native() : nullptr; }

  /// Destroys now; on failure it stays.
  result<void> close() {
    if (state_ == nullptr) return success();
    BOOST_OUTCOME_TRY(state_->id.close());
    state_.reset();
    return success();
  }

  cm_id(cm_id&&) noexcept = default;
  cm_id& operator=(cm_id&&) noexcept = default;
  cm_id(const cm_id&) = delete;
  cm_id& operator=(const cm_id&) = delete;

 private:
  struct state {
    state(rdma_cm_id* native, const cm_event_channel& on)
        : channel{on.share()},
          id{native, on.table(), "id", [](const control_table& table, rdma_cm_id* held) {
               return minus_one_errno(table.cm->destroy_id(held));
             }} {}
    cm_event_channel channel;
    object<rdma_cm_id> id;
  };

  template <class Function, class... Arguments>
  result<void> call(const char* failed, Function function, Arguments... arguments) const {
    errno = 0;
    const int value = (state_->id.table().cm->*function)(state_->id.native(), arguments...);
    return checked(minus_one_errno(value), [&] { return std::string{failed}; });
  }
  static int count(std::chrono::milliseconds timeout) noexcept {
    constexpr std::chrono::milliseconds most{std::numeric_limits<int>::max()};
    return static_cast<int>(std::min(timeout, most).count());
  }

  std::unique_ptr<state> state_;
};

}  // namespace verbena::verbs
