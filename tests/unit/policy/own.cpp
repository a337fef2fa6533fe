// SPDX-License-Identifier: BSL-1.0
// Policies as a user writes them, from the line that posts to the provider.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"

namespace vb = verbena;

namespace {

std::vector<std::string> told;

/// Errors as negative numbers, and a note of each failure.
struct numbers {
  static constexpr bool constructs = false;

  template <class T>
  struct outcome {
    vb::result<T> value;
    int number() const { return value ? 0 : -value.error().code().value(); }
  };
  template <class T>
  static outcome<T> deliver(vb::result<T>&& of) {
    return {std::move(of)};
  }
  static void failed(const vb::error& value) { told.push_back(value.message()); }
};

/// Only the last two of every three.
struct two_in_three {
  static constexpr bool by_request = false;
  static constexpr std::uint16_t window(std::uint32_t) noexcept { return 3; }
  static constexpr bool signals(std::uint16_t& unsignaled, std::uint16_t window, bool) noexcept {
    unsignaled = static_cast<std::uint16_t>((unsignaled + 1) % window);
    return unsignaled != 1;
  }
};

/// Counts how often the lock is taken.
struct counted {
  static constexpr bool any_thread = true;
  struct mutex {
    static inline int locks = 0;
    static inline int held = 0;
    void lock() {
      ++locks;
      ++held;
    }
    void unlock() { --held; }
  };
};

/// Notes every request on its way into a list.
struct noted {
  static constexpr bool uses_qp_ex = false;
  static inline std::vector<std::size_t> pieces;
  template <class Labels, class... Requests>
  static vb::answer post(ibv_qp* const& queue_pair, Labels&& labels, const Requests&... requests) {
    (pieces.push_back(Requests::piece_count), ...);
    return vb::posting::list::post(queue_pair, labels, requests...);
  }
};

}  // namespace

TEST_CASE("policies of a user's own take part in every post") {
  using endpoint = vb::endpoint<numbers, two_in_three, counted, noted>;
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto memory = fabricated::memory(domain);
  told.clear();
  noted::pieces.clear();
  counted::mutex::locks = 0;

  auto refused = endpoint::open(domain, {.send_depth = 1'000'000});
  CHECK(refused.number() == -static_cast<int>(vb::errc::capacity));

  auto here = endpoint::open(domain, {.send_depth = 8, .receive_depth = 8}).value.value();
  auto there = endpoint::open(domain, {.send_depth = 8, .receive_depth = 8}).value.value();
  CHECK(here.post(vb::receive(memory)));
  auto link = std::move(here).connect(there.describe().value.value()).value.value();

  CHECK(link.post(vb::send(memory), vb::send(vb::pieces{memory.first(1), memory.last(1)})));
  CHECK(link.post(vb::send(memory)));
  CHECK(noted::pieces == std::vector<std::size_t>{1, 2, 1});
  CHECK(counted::mutex::locks == 3);
  CHECK(counted::mutex::held == 0);
  const auto& sends = fabricated::machine::of(link.native_handle()).sends.posted;
  CHECK_FALSE(sends[0].is_signaled());
  CHECK(sends[1].is_signaled());
  CHECK(sends[2].is_signaled());

  CHECK(told.empty());
  adapter.fail_send(link.native_handle(), IBV_WC_REM_OP_ERR);
  while (link.completions().poll(vb::on([](const vb::failed&) {}))) {
  }
  CHECK_FALSE(link.post(vb::send(memory)));
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("remote operation error") != std::string::npos);
}
