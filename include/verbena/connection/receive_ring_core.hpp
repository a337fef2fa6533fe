// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/connection/receive_slots.hpp>

namespace verbena {

/// How large a ring is. `messages` receives are always there for what comes, beside those whose
/// messages have come and not been handled.
struct receive_ring_options {
  std::uint32_t messages = 512;
  std::uint32_t bytes = 4096;  ///< of the longest message
};

/// What a ring shares with the connections that receive by it. Lives until the last is gone.
template <completion_policy Completion>
class receive_ring_core {
  struct token {};

 public:
  using queue_core = completion_queue_core<Completion>;

  static result<std::shared_ptr<receive_ring_core>> create(const verbs::protection_domain& domain,
                                                           std::shared_ptr<queue_core> queue,
                                                           const receive_ring_options& asked) {
    const verbs::device& device = domain.device();
    BOOST_OUTCOME_TRY(device.usable("making a receive ring on a device"));
    BOOST_OUTCOME_TRY(queue->usable_on(device, "making a receive ring on a completion queue"));
    if (device.is_siw()) {
      return error{errc::not_supported, "a receive ring on " + device.name() +
                                            " (the kernel's siw makes shared receive queues, but "
                                            "the first queue pair on one brings it down)"};
    }
    BOOST_OUTCOME_TRY(const auto layout, lay_out(device, asked));
    BOOST_OUTCOME_TRY(auto shared, verbs::shared_receive_queue::create(domain, layout.slots, 1));
    BOOST_OUTCOME_TRY(auto memory,
                      receive_slots::memory_type::create(domain, layout.slots * layout.stride));
    BOOST_OUTCOME_TRY(auto place, queue->attach(layout.slots));
    auto made = std::make_shared<receive_ring_core>(token{}, std::move(queue), *place,
                                                    std::move(shared), std::move(memory), layout);
    BOOST_OUTCOME_TRY(made->slots_.fill());
    return made;
  }

  receive_ring_core(token, std::shared_ptr<queue_core> queue, queue_pair_state& place,
                    verbs::shared_receive_queue shared, receive_slots::memory_type memory,
                    const receive_slots::layout& layout)
      : queue_{std::move(queue)},
        place_{place},
        slots_{std::move(shared), std::move(memory), layout, place.owner, queue_->connections()} {
    place_.slots = &slots_;
  }
  receive_ring_core(const receive_ring_core&) = delete;
  receive_ring_core& operator=(const receive_ring_core&) = delete;
  ~receive_ring_core() { queue_->detach(place_, slots_.as().slots); }

  const std::shared_ptr<queue_core>& queue() const noexcept { return queue_; }
  receive_slots& slots() noexcept { return slots_; }

 private:
  /// So many more than asked for that those that wait to be posted with others are not missed.
  static constexpr std::uint32_t together = 16;

  static result<receive_slots::layout> lay_out(const verbs::device& device,
                                               const receive_ring_options& asked) {
    const std::uint32_t most = std::min(static_cast<std::uint32_t>(device.attributes().max_srq_wr),
                                        work_queue_positions::depth_limit);
    if (asked.messages == 0 || asked.messages > most) {
      return error{errc::capacity, "a receive ring of " + std::to_string(asked.messages) +
                                       " messages; " + device.name() + " allows 1 to " +
                                       std::to_string(most)};
    }
    constexpr std::uint32_t longest = std::uint32_t{1} << 31;
    if (asked.bytes == 0 || asked.bytes > longest) {
      return error{errc::capacity, "a receive ring of messages of " + std::to_string(asked.bytes) +
                                       " bytes; 1 to " + std::to_string(longest) + " are possible"};
    }
    // No two messages share a cache line, which the adapter and the program would fight for.
    constexpr std::size_t line = 64;
    receive_slots::layout made{};
    made.slots = std::min(asked.messages + together - 1, most);
    made.bytes = asked.bytes;
    made.stride = (std::size_t{asked.bytes} + line - 1) / line * line;
    made.batch = made.slots - asked.messages + 1;
    return made;
  }

  std::shared_ptr<queue_core> queue_;
  queue_pair_state& place_;
  receive_slots slots_;
};

}  // namespace verbena
