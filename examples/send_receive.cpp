// SPDX-License-Identifier: BSL-1.0
//
// One program sends messages, the other has posted a receive for each of them beforehand, so none
// finds nowhere to go; a program that can not know how many will come must count them with its
// peer. A handler is given each message as it arrives.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <verbena/verbena.hpp>

#include "frame/content.hpp"
#include "frame/median.hpp"
#include "frame/require.hpp"
#include "frame/run.hpp"

namespace vb = verbena;
using namespace example;

// The policies. Those not named here have their defaults: transport::rc, errors::throwing, …
template <class Setup, class Completion>
using connection = vb::connection<Setup, Completion, vb::signaling::every>;

template <class Connection>
struct roles {
  static std::string listen(const arguments& given, const vb::device& device) {
    auto inbox = device.allocate<vb::sink>(given.size * given.iterations);
    endpoint_of<Connection> here{device, {.receive_depth = given.iterations}};
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      const auto place = inbox.subspan(i * given.size, given.size);
      require(here.post(vb::receive(place).token(i)));
    }
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(std::move(here));
    link.wait(given.timeout, vb::on(
                                 [&](vb::completed<vb::receive> message) {
                                   check(message.bytes(), message.token(), given.size);
                                 },
                                 [](vb::failed) {}));  // wait() throws then
    peer.part(link);
    return fmt::format("received {} messages of {} bytes", given.iterations, given.size);
  }

  static std::string connect(const arguments& given, const vb::device& device) {
    auto text = device.allocate<vb::source>(given.size);
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device});
    std::vector<std::chrono::nanoseconds> times;
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      fill(text.elements(), i);
      const auto start = std::chrono::steady_clock::now();
      require(link.post(vb::send(text)));
      link.wait(given.timeout);
      times.push_back(std::chrono::steady_clock::now() - start);
    }
    peer.part(link);
    return fmt::format("{} sends of {} bytes, one takes {} (median)", given.iterations, given.size,
                       median(times));
  }
};

int main(int count, char** words) {
  return run<connection, roles>(count, words,
                                "The one that connects sends messages to the one that listens.");
}
