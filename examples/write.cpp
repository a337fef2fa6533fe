// SPDX-License-Identifier: BSL-1.0
//
// One program writes into memory of the other, then sends a message to say so. A write that has
// completed has reached the other's adapter; only what arrives after it on the same connection
// tells the other program that it can see the data.
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

// The policies. Those not named here have their defaults: errors::throwing, signaling::every, …
template <class Setup, class Completion>
using connection = vb::connection<Setup, Completion, vb::transport::rc>;

template <class Connection>
struct roles {
  static std::string listen(const arguments& given, const vb::device& device) {
    auto inbox = device.allocate<vb::remote_writable>(given.size * given.iterations);
    auto done = device.allocate<vb::sink>(1);
    endpoint_of<Connection> here{device};
    require(here.post(vb::receive(done)));  // before the peer can know of this end
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(std::move(here), inbox);
    link.wait(given.timeout);  // for the message: what was written before it is there
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      check(inbox.subspan(i * given.size, given.size).elements(), i, given.size);
    }
    peer.part(link);
    return fmt::format("got {} writes of {} bytes", given.iterations, given.size);
  }

  static std::string connect(const arguments& given, const vb::device& device) {
    auto text = device.allocate<vb::source>(given.size);
    auto done = device.allocate<vb::source>(1);
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device});
    const auto inbox = link.template peer<std::byte, vb::remote_writable>();
    std::vector<std::chrono::nanoseconds> times;
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      fill(text.elements(), i);
      const auto start = std::chrono::steady_clock::now();
      require(link.post(vb::write(text, inbox.subspan(i * given.size, given.size))));
      link.wait(given.timeout);
      times.push_back(std::chrono::steady_clock::now() - start);
    }
    require(link.post(vb::send(done)));
    peer.part(link);
    return fmt::format("{} writes of {} bytes, one takes {} (median)", given.iterations, given.size,
                       median(times));
  }
};

int main(int count, char** words) {
  return run<connection, roles>(count, words,
                                "The one that connects writes into memory of the one that listens, "
                                "then tells it with a message.");
}
