// SPDX-License-Identifier: BSL-1.0
//
// One program draws numbers from a counter in the memory of the other, and takes a lock there
// first: fetch-and-add and compare-and-swap, done by the other's adapter while its processor does
// something else. Each gives what was there before.
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <verbena/verbena.hpp>

#include "frame/median.hpp"
#include "frame/require.hpp"
#include "frame/run.hpp"

namespace vb = verbena;
using namespace example;

// The policies. Those not named here have their defaults: errors::throwing, signaling::every, …
template <class Setup, class Completion>
using connection = vb::connection<Setup, Completion, vb::transport::rc>;

constexpr std::size_t lock = 0, counter = 1;
constexpr std::uint64_t is_free = 0, is_mine = 1;

template <class Connection>
struct roles {
  static std::string listen(const arguments& given, const vb::device& device) {
    auto words = device.allocate<std::uint64_t, vb::remote_atomic>(2);
    auto done = device.allocate<vb::sink>(1);
    endpoint_of<Connection> here{device};
    require(here.post(vb::receive(done)));
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(std::move(here), words);
    link.wait(given.timeout);  // for the message: the numbers have been drawn
    if (words.data()[counter] != given.iterations || words.data()[lock] != is_free) {
      throw std::runtime_error{fmt::format("the counter is {} and the lock {}",
                                           words.data()[counter], words.data()[lock])};
    }
    peer.part(link);
    return fmt::format("gave {} numbers", given.iterations);
  }

  static std::string connect(const arguments& given, const vb::device& device) {
    auto old = device.allocate<std::uint64_t, vb::sink>(1);
    auto done = device.allocate<vb::source>(1);
    meeting<Connection> peer{given, device};
    Connection link = peer.connect(endpoint_of<Connection>{device});
    const auto words = link.template peer<std::uint64_t, vb::remote_atomic>();
    const auto one = [&](auto&& operation, std::uint64_t expected) {
      require(link.post(operation));
      link.wait(given.timeout);
      if (old.data()[0] != expected)
        throw std::runtime_error{fmt::format("got {}, expected was {}", old.data()[0], expected)};
    };
    one(vb::compare_and_swap(old, words.subspan(lock), is_free, is_mine), is_free);
    std::vector<std::chrono::nanoseconds> times;
    for (std::uint32_t i = 0; i < given.iterations; ++i) {
      const auto start = std::chrono::steady_clock::now();
      one(vb::fetch_and_add(old, words.subspan(counter), 1), i);
      times.push_back(std::chrono::steady_clock::now() - start);
    }
    one(vb::compare_and_swap(old, words.subspan(lock), is_mine, is_free), is_mine);
    require(link.post(vb::send(done)));
    peer.part(link);
    return fmt::format("{} numbers drawn, one takes {} (median)", given.iterations, median(times));
  }
};

int main(int count, char** words) {
  return run<connection, roles>(
      count, words,
      "The one that connects draws numbers from a counter in memory of the one that listens.");
}
