// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "frame/meeting.hpp"
#include "frame/peer_socket.hpp"

namespace example {

/// Carries the descriptors over TCP.
template <class Connection>
class meeting<Connection, false> {
 public:
  meeting(const arguments& given, const verbena::device&) : given_{given} {}

  template <class... Regions>
  Connection connect(endpoint_of<Connection> here, const Regions&... opened) {
    const verbena::descriptor_bytes mine = here.describe(opened...);
    socket_.emplace(given_);
    socket_->send(mine);
    verbena::descriptor_bytes theirs;
    socket_->receive(theirs);
    Connection link = std::move(here).connect(theirs);
    agree();  // what is sent to an end that is not connected yet is lost, and sent again much later
    return link;
  }

  void part(Connection& link) {
    link.wait(given_.timeout, verbena::on([](verbena::failed) {}));  // which wait() throws
    agree();  // a queue pair that is gone no longer acknowledges what it has received
    link.close();
  }

 private:
  /// Returns when both have called it.
  void agree() const {
    std::array<std::byte, 1> word{};
    socket_->send(word);
    socket_->receive(word);
  }

  const arguments& given_;
  std::optional<peer_socket> socket_;
};

}  // namespace example
