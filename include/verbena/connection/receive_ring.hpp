// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <verbena/connection/completion_queue.hpp>
#include <verbena/connection/receive_ring_core.hpp>

namespace verbena {

/// Where the messages of any number of connections come to (ibv_create_srq(3)): memory in equal
/// places, registered and posted when it is made. Polling the completion queue it is made on hands
/// out each message as a vb::message and posts its place again after the handler. A peer whose
/// message finds no place waits, as where no receive is posted. Endpoints on transport::rc are made
/// on the ring; it stays until the last of them is gone. Move-only; belongs to the thread that
/// polls.
template <completion_policy Completion = completion::busy_poll,
          errors_policy Errors = errors::throwing>
class receive_ring {
 public:
  using core = receive_ring_core<Completion>;
  using queue_type = completion_queue<Completion, Errors>;

  /// Makes one, in a protection domain (that of a device, say). It counts as one of the queue's
  /// connections, and takes 15 entries of it more than it has messages. Errors: errc::capacity
  /// with what was asked and allowed; errc::not_supported where the device has no shared receive
  /// queues; errno of the verbs.
  [[nodiscard]] static auto open(const verbs::protection_domain& domain, const queue_type& queue,
                                 const receive_ring_options& asked = {}) {
    return Errors::deliver(create(domain, queue, asked));
  }
  receive_ring(const verbs::protection_domain& domain, const queue_type& queue,
               const receive_ring_options& asked = {})
    requires Errors::constructs
      : receive_ring{Errors::deliver(create(domain, queue, asked))} {}

  /// Null once moved from.
  ibv_srq* native_handle() const noexcept {
    return core_ ? core_->slots().native_handle() : nullptr;
  }
  const std::shared_ptr<core>& shared() const noexcept { return core_; }

 private:
  explicit receive_ring(std::shared_ptr<core> shared) noexcept : core_{std::move(shared)} {}

  static result<receive_ring> create(const verbs::protection_domain& domain,
                                     const queue_type& queue, const receive_ring_options& asked) {
    BOOST_OUTCOME_TRY(auto made, core::create(domain, queue.shared(), asked));
    return receive_ring{std::move(made)};
  }

  std::shared_ptr<core> core_;
};

}  // namespace verbena
