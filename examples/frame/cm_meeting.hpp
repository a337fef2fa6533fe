// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <verbena/verbena.hpp>

#include "frame/announce.hpp"
#include "frame/arguments.hpp"
#include "frame/meeting.hpp"

namespace example {

/// By RDMA CM, which carries the regions too.
template <class Connection>
class meeting<Connection, true> {
 public:
  meeting(const arguments& given, const verbena::device& device) : given_{given}, device_{device} {}

  template <class... Regions>
  Connection connect(endpoint_of<Connection> here, const Regions&... opened) {
    const verbena::address at{given_.address, given_.port};
    if (!given_.listens) return std::move(here).connect(at, given_.timeout, opened...);
    typename Connection::listener port{device_, at};
    announce(given_);
    // In two steps and not by port.accept(), because receives have been posted to this endpoint.
    auto request = port.next(given_.timeout);
    return std::move(request).accept(std::move(here), given_.timeout, opened...);
  }

  void part(Connection& link) {
    try {
      link.wait(given_.timeout, verbena::on([](verbena::failed) {}));  // which wait() throws
    } catch (const verbena::failure& failed) {
      // The other one closes when it has got everything, which can be before it has acknowledged.
      if (failed.code() != verbena::errc::disconnected) throw;
    }
    link.close();
  }

 private:
  const arguments& given_;
  const verbena::device& device_;
};

}  // namespace example
