// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <verbena/cm/connect.hpp>
#include <verbena/connection/attachment.hpp>
#include <verbena/connection/completion_queue.hpp>
#include <verbena/connection/connection.hpp>
#include <verbena/connection/deadline.hpp>
#include <verbena/connection/link.hpp>
#include <verbena/connection/post_on.hpp>
#include <verbena/connection/receive_ring.hpp>
#include <verbena/policy/policy_set.hpp>

namespace verbena {

/// A queue pair that is not connected yet (INIT): it can take receives, so that none comes too
/// late, and describe itself; connecting makes it a connection. Move-only; one thread at a time.
template <class Policies>
class basic_endpoint {
  using errors = typename Policies::errors;
  using transport = typename Policies::transport;

 public:
  using policies = Policies;
  using attachment_type =
      attachment<typename Policies::completion, typename Policies::threading::mutex>;
  using queue_core = typename attachment_type::core;
  using ring_core = typename attachment_type::ring;

  /// Makes one in a protection domain (that of a device, say), with a completion queue of its own.
  /// Errors: errc::capacity naming the option; errno of the verbs.
  [[nodiscard]] static auto open(const verbs::protection_domain& domain, options asked = {}) {
    return errors::deliver(create(domain, asked, nullptr));
  }
  /// The same on a completion queue that others may share.
  template <class QueueErrors>
  [[nodiscard]] static auto open(
      const verbs::protection_domain& domain,
      const completion_queue<typename Policies::completion, QueueErrors>& queue,
      options asked = {}) {
    return errors::deliver(create(domain, asked, queue.shared()));
  }
  /// The same whose messages come to a ring, on the ring's completion queue; it takes no receives
  /// of its own, and of the options none that are about them. Errors also: errc::moved_from.
  template <class RingErrors>
  [[nodiscard]] static auto open(
      const verbs::protection_domain& domain,
      const receive_ring<typename Policies::completion, RingErrors>& ring, options asked = {}) {
    return errors::deliver(create_on(domain, asked, ring.shared()));
  }
  explicit basic_endpoint(const verbs::protection_domain& domain, options asked = {})
    requires errors::constructs
      : basic_endpoint{errors::deliver(create(domain, asked, nullptr))} {}
  template <class QueueErrors>
    requires errors::constructs
  basic_endpoint(const verbs::protection_domain& domain,
                 const completion_queue<typename Policies::completion, QueueErrors>& queue,
                 options asked = {})
      : basic_endpoint{errors::deliver(create(domain, asked, queue.shared()))} {}
  template <class RingErrors>
    requires errors::constructs
  basic_endpoint(const verbs::protection_domain& domain,
                 const receive_ring<typename Policies::completion, RingErrors>& ring,
                 options asked = {})
      : basic_endpoint{errors::deliver(create_on(domain, asked, ring.shared()))} {}

  /// Posts receives; other operations need a connection. See connection::post.
  template <class... Requests>
  [[gnu::always_inline]] posted post(const Requests&... receives) {
    static_assert(
        ((Requests::what == operation::receive) && ...),
        "an endpoint is not connected yet: it can post receives only, connect it to send");
    if (attachment_ == nullptr) [[unlikely]]
      return report<errors>(closed_queue_pair, {progress{0, errc::broken}});
    return post_on<Policies>(attachment_->state(), attachment_->mutex(), receives...);
  }

  /// This end in bytes, to be carried to the peer by any means, with up to four regions that it
  /// opens to it. Whoever reads them can use those regions. Errors: errc::not_supported on iWARP,
  /// errc::no_usable_gid; errc::foreign_domain and moved_from for a region.
  template <class... Regions>
  [[nodiscard]] auto describe(const Regions&... regions)
    requires(!Policies::setup::uses_cm)
  {
    static_assert(sizeof...(Regions) <= regions_in_descriptor,
                  "a descriptor carries at most four regions");
    return errors::deliver(describe_with({region_record::of(regions)...}, sizeof...(Regions)));
  }

  /// On transport::ud: makes it able to send, to whom each send names. On an error the endpoint is
  /// gone. Errors: errc::no_usable_gid, errno of the transition.
  template <class Transport = transport>
    requires(Transport::addressed)
  [[nodiscard]] auto connect() && {
    return errors::deliver(std::move(*this).open_to_all());
  }

  /// Connects to the end that the bytes describe. Both ends do this, in any order; neither knows
  /// when the other has. On an error the endpoint is gone. Errors: errc::wire_* for bytes that are
  /// no descriptor, errc::mismatch, errc::no_usable_gid, errno of the transition.
  template <class Setup = typename Policies::setup>
    requires(!Setup::uses_cm && !transport::addressed)
  [[nodiscard]] auto connect(std::span<const std::byte> peer) && {
    return errors::deliver(std::move(*this).connect_to(peer));
  }

  /// Connects to the listener at `to` through RDMA CM and opens up to two regions to it. `timeout`
  /// covers every step; the completion queue's stop() ends it too. On an error the endpoint is
  /// gone. Errors, each with the address: errc::timed_out with the step, errc::stopped;
  /// errc::no_listener, rejected (with the peer's reason), stale_connection, unreachable;
  /// errc::mismatch where the way there leads through another device; errc::wire_* for a listener
  /// that is no verbena or one of another version; errno. On iWARP the kernel's TCP connect is
  /// inside the call, and it gives up an attempt only when its own timer ends: both can take longer
  /// than `timeout`.
  template <class... Regions>
    requires(Policies::setup::uses_cm)
  [[nodiscard]] auto connect(const address& to, std::chrono::nanoseconds timeout,
                             const Regions&... offered) && {
    return errors::deliver(
        std::move(*this).connect_by(deadline_after(timeout), to, private_data::offer(offered...)));
  }

  /// What the device made of the depths and pieces asked for, at least those; nothing once moved.
  ibv_qp_cap granted() const noexcept {
    return attachment_ ? attachment_->granted() : ibv_qp_cap{};
  }
  /// What can be posted on it; nothing once moved.
  verbena::capabilities capabilities() const {
    return attachment_ ? attachment_->template capabilities<transport>() : verbena::capabilities{};
  }
  ibv_qp* native_handle() const noexcept {
    return attachment_ ? attachment_->native_handle() : nullptr;
  }

  /// For the layers that connect it.
  std::unique_ptr<attachment_type> release() && noexcept { return std::move(attachment_); }
  attachment_type& attached() const noexcept { return *attachment_; }

  static result<basic_endpoint> create(const verbs::protection_domain& domain, options asked,
                                       std::shared_ptr<queue_core> queue,
                                       std::shared_ptr<ring_core> ring = {}) {
    BOOST_OUTCOME_TRY(
        auto made,
        (attachment_type::template create<transport, typename Policies::signaling,
                                          typename Policies::posting, typename Policies::threading>(
            domain, asked, std::move(queue), std::move(ring))));
    return basic_endpoint{std::move(made)};
  }

 private:
  static result<basic_endpoint> create_on(const verbs::protection_domain& domain, options asked,
                                          std::shared_ptr<ring_core> ring) {
    static_assert(transport::queue_pair_type == IBV_QPT_RC,
                  "a receive_ring serves transport::rc: uc has no shared receive queues "
                  "(ibv_create_qp(3)), and ud needs receives of its own");
    if (ring == nullptr) return error{errc::moved_from, "making an endpoint on a receive ring"};
    return create(domain, asked, nullptr, std::move(ring));
  }

  explicit basic_endpoint(std::unique_ptr<attachment_type> made) noexcept
      : attachment_{std::move(made)} {}

  result<descriptor_bytes> describe_with(std::array<region_record, regions_in_descriptor> records,
                                         std::size_t count) {
    if (attachment_ == nullptr) return error{errc::moved_from, "describing an endpoint"};
    const region_list regions{records, count};
    BOOST_OUTCOME_TRY(regions.check(attachment_->domain().id()));
    BOOST_OUTCOME_TRY(auto mine, link::describe<transport>(*attachment_, first_packet_));
    mine.regions = regions;
    BOOST_OUTCOME_TRY(attachment_->template allow<transport>(mine.regions.granted()));
    return mine.write();
  }

  result<basic_connection<Policies>> open_to_all() && {
    if (attachment_ == nullptr) return error{errc::moved_from, "connecting an endpoint"};
    std::unique_ptr<attachment_type> here = std::move(attachment_);
    BOOST_OUTCOME_TRY(auto mine, link::describe<transport>(*here, first_packet_));
    BOOST_OUTCOME_TRY(link::open_to_all<transport>(*here, first_packet_));
    return basic_connection<Policies>{std::move(here), {}, datagram_session{{}, mine}};
  }

  result<basic_connection<Policies>> connect_to(std::span<const std::byte> bytes) && {
    if (attachment_ == nullptr) return error{errc::moved_from, "connecting an endpoint"};
    std::unique_ptr<attachment_type> here = std::move(attachment_);
    BOOST_OUTCOME_TRY(auto mine, link::describe<transport>(*here, first_packet_));
    BOOST_OUTCOME_TRY(auto peer, endpoint_descriptor::read(bytes));
    BOOST_OUTCOME_TRY(link::connect<transport>(*here, mine, peer));
    return basic_connection<Policies>{std::move(here), peer.regions};
  }

  result<basic_connection<Policies>> connect_by(
      typename attachment_type::clock::time_point deadline, const address& to,
      const region_list& offered) && {
    if (attachment_ == nullptr) return error{errc::moved_from, "connecting an endpoint"};
    std::unique_ptr<attachment_type> here = std::move(attachment_);
    BOOST_OUTCOME_TRY(offered.check(here->domain().id()));
    const int stop = here->queue()->waiter().stop_descriptor();
    auto made = cm::connect<transport>(*here, to, deadline, stop, offered);
    if (!made) return made.error().within("connecting to " + to_string(to));
    return basic_connection<Policies>{std::move(here), made.value().regions,
                                      std::move(made.value().session)};
  }

  std::unique_ptr<attachment_type> attachment_;
  std::uint32_t first_packet_ = link::random_packet_number();
};

/// An endpoint with policies in any order: endpoint<setup::cm, errors::returning>.
template <class... Policies>
using endpoint = basic_endpoint<policies<Policies...>>;

}  // namespace verbena
