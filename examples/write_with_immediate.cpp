// SPDX-License-Identifier: BSL-1.0
//
// One program writes blocks into memory of the other, each with a number that goes into the
// other's completion: its receive, which needs no memory, says which block is there to be read. No
// message has to follow.
#include <algorithm>
#include <chrono>
#include <stdexcept>
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
    endpoint_of<Connection> here{device};
    const vb::capabilities can = here.capabilities();
    if (!can.immediates) {  // iWARP
      throw vb::failure{vb::error{vb::errc::not_supported, "immediates on " + can.device}};
    }
    std::uint32_t posted = 0;
    const std::uint32_t ahead = std::min(given.iterations, can.receive_depth);
    for (; posted < ahead; ++posted) require(here.post(vb::receive()));
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(std::move(here), inbox);
    std::uint32_t told = 0;
    const auto handle = vb::on(
        [&](vb::completed<vb::receive> done) {
          const std::uint32_t block = done.immediate().value();
          if (block >= given.iterations) throw std::out_of_range{"a block that nobody has"};
          check(inbox.subspan(block * given.size, given.size).elements(), block, given.size);
          ++told;
        },
        [](vb::failed) {});  // which wait() throws
    while (told < given.iterations) {
      link.wait(given.timeout, handle);
      for (; posted < std::min(given.iterations, told + ahead); ++posted)
        require(link.post(vb::receive()));
    }
    peer.part(link);
    return fmt::format("was told of {} blocks of {} bytes", told, given.size);
  }

  static std::string connect(const arguments& given, const vb::device& device) {
    auto text = device.allocate<vb::source>(given.size);
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device});
    const auto inbox = link.template peer<std::byte, vb::remote_writable>();
    std::vector<std::chrono::nanoseconds> times;
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      fill(text.elements(), i);
      const auto start = std::chrono::steady_clock::now();
      const auto block = inbox.subspan(i * given.size, given.size);
      require(link.post(vb::write_with_immediate(text, block, i)));
      link.wait(given.timeout);
      times.push_back(std::chrono::steady_clock::now() - start);
    }
    peer.part(link);
    return fmt::format("{} writes of {} bytes, one takes {} (median)", given.iterations, given.size,
                       median(times));
  }
};

int main(int count, char** words) {
  return run<connection, roles>(count, words,
                                "The one that connects writes blocks into memory of the one that "
                                "listens, whose completions say which.");
}
