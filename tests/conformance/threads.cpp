// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"

namespace vb = verbena;

using links::no_failure;
using links::soon;

namespace {

constexpr std::uint32_t threads = 4;
constexpr std::uint32_t each = 300;
constexpr std::uint32_t credits = 32;

/// A message says who sent it, and how many that thread had sent before.
struct message {
  std::uint32_t thread;
  std::uint32_t number;
};

template <class Posting>
using link_type =
    vb::connection<vb::setup::cm, vb::threading::shared, vb::signaling::one_in<4>, Posting>;

}  // namespace

TEMPLATE_TEST_CASE("FC-42 several threads post on one connection, another polls", "[threads]",
                   vb::posting::list, vb::posting::builder) {
  VERBENA_DEVICE_OR_SKIP(device);
  if (TestType::uses_qp_ex && device.domain().device().is_iwarp()) {
    VERBENA_SKIP(device.name() + " (iWARP) has no posting::builder");
  }
  auto out = device.allocate<message, vb::source>(threads * each);
  auto in = device.allocate<message, vb::sink>(credits);
  auto both =
      links::connect<link_type<TestType>>(device, {.send_depth = 16, .receive_depth = credits});
  for (std::uint32_t i = 0; i < credits; ++i) {
    REQUIRE(both.there.post(vb::receive(in.subspan(i, 1)).token(i)));
  }
  // A message is sent when its receive is there: what is allowed is what has been posted.
  std::atomic<std::uint32_t> allowed{credits};
  std::atomic<bool> failed{false};
  std::vector<std::thread> senders;
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    senders.emplace_back([&, thread] {
      for (std::uint32_t number = 0; number < each && !failed;) {
        std::uint32_t left = allowed.load();
        if (left == 0 || !allowed.compare_exchange_weak(left, left - 1)) {
          std::this_thread::yield();
          continue;
        }
        const std::uint32_t at = thread * each + number;
        out[at] = {thread, number};
        while (!failed) {
          const vb::posted result = both.here.post(vb::send(out.subspan(at, 1)));
          if (result) break;
          if (!result.would_block()) failed = true;
          std::this_thread::yield();
        }
        ++number;
      }
    });
  }
  std::array<std::uint32_t, threads> next{};
  std::uint32_t retired = 0;
  std::uint32_t received = 0;
  const auto until = std::chrono::steady_clock::now() + 4 * soon;
  while (received < threads * each && !failed && std::chrono::steady_clock::now() < until) {
    both.here.completions().poll(
        vb::on([&](vb::completed<vb::send> done) { retired += done.retired(); },
               [&](const vb::failed&) { failed = true; }));
    both.there.completions().poll(vb::on(
        [&](vb::completed<vb::receive> done) {
          const message got = in[done.token()];
          if (got.thread < threads && got.number == next[got.thread]) {
            ++next[got.thread];
          } else {
            failed = true;
          }
          ++received;
          if (!both.there.post(vb::receive(in.subspan(done.token(), 1)).token(done.token()))) {
            failed = true;
          }
          ++allowed;
        },
        [&](const vb::failed&) { failed = true; }));
  }
  const bool stuck = received < threads * each;
  if (stuck) failed = true;
  for (std::thread& sender : senders) sender.join();
  CHECK_FALSE(stuck);
  CHECK_FALSE(failed);
  both.here.wait(soon, vb::on([&](vb::completed<vb::send> done) { retired += done.retired(); },
                              [](const vb::failed& f) { no_failure(f); }));
  CHECK(std::ranges::all_of(next, [](std::uint32_t count) { return count == each; }));
  // Without an unsignaled end, which a marker would have retired.
  CHECK(retired >= threads * each - 3);
  CHECK(retired <= threads * each);
}
