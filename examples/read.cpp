// SPDX-License-Identifier: BSL-1.0
//
// One program shows memory, the other reads it, then says with a message that it has done. The one
// that shows does nothing meanwhile: its adapter answers.
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
    auto shown = device.allocate<vb::remote_readable>(given.size * given.iterations);
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      fill(shown.subspan(i * given.size, given.size).elements(), i);
    }
    auto done = device.allocate<vb::sink>(1);
    endpoint_of<Connection> here{device};
    require(here.post(vb::receive(done)));  // before the peer can know of this end
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(std::move(here), shown);
    link.wait(given.timeout);  // for the message: until then the memory must stay
    peer.part(link);
    return fmt::format("showed {} pieces of {} bytes", given.iterations, given.size);
  }

  static std::string connect(const arguments& given, const vb::device& device) {
    auto into = device.allocate<vb::sink>(given.size);
    auto done = device.allocate<vb::source>(1);
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device});
    const auto from = link.template peer<std::byte, vb::remote_readable>();
    std::vector<std::chrono::nanoseconds> times;
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      const auto start = std::chrono::steady_clock::now();
      require(link.post(vb::read(into, from.subspan(i * given.size, given.size))));
      link.wait(given.timeout);
      times.push_back(std::chrono::steady_clock::now() - start);
      check(into.elements(), i, given.size);
    }
    require(link.post(vb::send(done)));
    peer.part(link);
    return fmt::format("{} reads of {} bytes, one takes {} (median)", given.iterations, given.size,
                       median(times));
  }
};

int main(int count, char** words) {
  return run<connection, roles>(count, words,
                                "The one that connects reads memory of the one that listens, which "
                                "has nothing to do meanwhile.");
}
