// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <verbena/chain/post.hpp>
#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/posting/send_ops.hpp>
#include <verbena/verbs/protection_domain.hpp>
#include <verbena/verbs/queue_pair.hpp>

namespace fabricated {

/// How a link is made.
struct link_options {
  std::uint32_t send_depth = 16;
  std::uint32_t receive_depth = 16;
  std::uint32_t pieces = 4;
  std::uint32_t max_message = 1U << 30;
  std::uint8_t send_pieces = 16;
  std::uint8_t receive_pieces = 16;
  std::uint8_t read_pieces = 16;
  verbena::feature lacking{};
  std::uint16_t inline_bytes = 0;
};

/// The least that can be posted to: a queue pair in RTS with its state on a completion queue, for
/// tests of what lies below endpoint and connection.
template <class Policies = verbena::policies<>>
class link {
 public:
  using core = verbena::completion_queue_core<typename Policies::completion>;

  /// `queue` may serve several; without one it gets its own.
  explicit link(const verbena::verbs::protection_domain& domain,
                std::shared_ptr<core> completions = nullptr, link_options options = {})
      : queue{std::move(completions)},
        domain_{domain.share()},
        data_(2 * std::bit_ceil(std::max(options.send_depth, options.receive_depth))),
        depth_{options.send_depth + options.receive_depth} {
    if (queue == nullptr) queue = core::create(domain.device(), {depth_, 1}, {}).value();
    ibv_qp_init_attr wanted{};
    wanted.send_cq = queue->native();
    wanted.recv_cq = queue->native();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {options.send_depth, options.receive_depth, options.pieces, options.pieces,
                  options.inline_bytes};
    using posting = typename Policies::posting;
    constexpr std::uint64_t ops =
        posting::uses_qp_ex ? verbena::posting::send_ops_of<typename Policies::transport> : 0;
    pair = verbena::verbs::queue_pair::create(domain, wanted, queue, ops).value();
    connect();

    state = queue->attach(depth_).value();
    state->queue_pair = pair.native_handle();
    state->memory_at = data_.data();
    state->memory_mask = static_cast<std::uint16_t>(data_.size() / 2 - 1);
    state->sends.capacity = options.send_depth;
    state->receives.capacity = options.receive_depth;
    state->domain = domain.id();
    state->max_message = options.max_message;
    state->send_pieces = options.send_pieces;
    state->receive_pieces = options.receive_pieces;
    state->read_pieces = options.read_pieces;
    state->lacking = options.lacking;
    state->inline_limit = options.inline_bytes;
    state->signal_window = Policies::signaling::window(options.send_depth);
    domain_.lingering().add(state->sends);
    domain_.lingering().add(state->receives);
  }
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  ~link() {
    pair.close().value();
    domain_.lingering().remove(state->sends);
    domain_.lingering().remove(state->receives);
    queue->detach(*state, depth_);
  }

  template <class... Requests>
  verbena::posted post(const Requests&... requests) {
    return verbena::chain::post<Policies>(*state, requests...);
  }
  ibv_qp* native() const { return pair.native_handle(); }

  std::shared_ptr<core> queue;
  verbena::verbs::queue_pair pair;
  verbena::queue_pair_state* state = nullptr;

 private:
  void connect() const {
    using transport = typename Policies::transport;
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    pair.modify(to, transport::to_init, "INIT").value();
    to.qp_state = IBV_QPS_RTR;
    to.ah_attr.port_num = 1;
    to.ah_attr.is_global = 1;
    to.path_mtu = IBV_MTU_1024;
    to.dest_qp_num = 1;
    pair.modify(to, transport::to_receive, "RTR").value();
    to.qp_state = IBV_QPS_RTS;
    pair.modify(to, transport::to_send, "RTS").value();
  }

  verbena::verbs::protection_domain domain_;
  std::vector<std::byte*> data_;
  std::uint32_t depth_;
};

}  // namespace fabricated
