// SPDX-License-Identifier: BSL-1.0
//
// Two programs send a message to and fro. Each posts the receive for the next message before it
// sends the one that the next is the answer to: a receive is never too late.
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

constexpr std::uint32_t ping(std::uint32_t round) { return 2 * round; }
constexpr std::uint32_t pong(std::uint32_t round) { return 2 * round + 1; }

template <class Connection>
struct roles {
  static std::string listen(const arguments& given, const vb::device& device) {
    auto out = device.allocate<vb::source>(given.size);
    auto in = device.allocate<vb::sink>(given.size);
    endpoint_of<Connection> here{device};
    require(here.post(vb::receive(in)));  // before the peer can know of this end
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(std::move(here));
    for (std::uint32_t round = 0; round < given.iterations; ++round) {
      link.wait(given.timeout);  // for the ping to come in, and for the last pong to be out
      check(in.elements(), ping(round), given.size);
      fill(out.elements(), pong(round));
      if (round + 1 < given.iterations) require(link.post(vb::receive(in)));
      require(link.post(vb::send(out)));
    }
    peer.part(link);
    return fmt::format("answered {} messages of {} bytes", given.iterations, given.size);
  }

  static std::string connect(const arguments& given, const vb::device& device) {
    auto out = device.allocate<vb::source>(given.size);
    auto in = device.allocate<vb::sink>(given.size);
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device});
    std::vector<std::chrono::nanoseconds> half_rounds;
    for (std::uint32_t round = 0; round < given.iterations; ++round) {
      fill(out.elements(), ping(round));
      require(link.post(vb::receive(in)));
      const auto start = std::chrono::steady_clock::now();
      require(link.post(vb::send(out)));
      link.wait(given.timeout);  // for both
      half_rounds.push_back((std::chrono::steady_clock::now() - start) / 2);
      check(in.elements(), pong(round), given.size);
    }
    peer.part(link);
    return fmt::format("{} round trips of {} bytes, half of one takes {} (median)",
                       given.iterations, given.size, median(half_rounds));
  }
};

int main(int count, char** words) {
  return run<connection, roles>(
      count, words,
      "Sends a message to and fro and tells the latency: half the time of "
      "a round trip.");
}
