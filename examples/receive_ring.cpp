// SPDX-License-Identifier: BSL-1.0
//
// As send_receive, but the one that listens has a ring: 16 places take any number of messages, and
// none is posted by the program. However many connections there are, each is an endpoint made on
// the same ring, and a message tells which of them it came by.
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
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
    using completion = typename Connection::policies::completion;
    // Two places on the queue: the ring's and the connection's.
    vb::completion_queue<completion> queue{device, {.entries = 1024, .connections = 2}};
    const vb::receive_ring ring{
        device, queue, {.messages = 16, .bytes = static_cast<std::uint32_t>(given.size)}};
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device, ring});
    std::uint32_t received = 0;
    const auto handle = vb::on(
        [&](vb::message message) {
          if (message.connection() == link.id()) check(message.bytes(), received++, given.size);
        },
        [](vb::failed failed) {
          throw std::system_error{vb::make_error_code(failed.status()), "a request"};
        });
    while (received < given.iterations) {
      if (const vb::polled some = queue.wait(given.timeout, handle); !some)
        throw std::system_error{some.error(), "waiting for messages"};
    }
    peer.part(link);
    return fmt::format("received {} messages of {} bytes", received, given.size);
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
                                "The one that connects sends messages to the other one's ring.");
}
