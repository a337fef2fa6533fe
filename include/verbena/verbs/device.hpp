// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <verbena/verbs/object.hpp>

namespace verbena::verbs {

/// Owner of an open device. Move-only; objects made on it keep it open, so it may go first.
/// Every const member may be called from any thread.
class device {
 public:
  device() = default;

  /// Takes over `context`, which `table` must be able to close, and asks for its attributes. On
  /// failure the context is closed.
  static result<device> adopt(ibv_context* context, const control_table& table) {
    auto held = std::make_shared<state>(context, table);
    errno = 0;
    const int number = returned_errno(table.query_device(context, &held->attributes));
    BOOST_OUTCOME_TRY(verbs::checked(
        number, [&] { return "cannot query the device " + std::string{context->device->name}; }));
    device opened;
    opened.state_ = std::move(held);
    return opened;
  }

  /// The name it was opened by, such as "mlx5_0" or "rxe0".
  std::string name() const { return native_handle() ? native_handle()->device->name : "(closed)"; }

  /// As ibv_query_device gives them.
  const ibv_device_attr& attributes() const noexcept { return state_->attributes; }

  /// iWARP differs where it matters: no immediates, read sinks need remote write, queue pairs are
  /// connected by RDMA CM alone.
  bool is_iwarp() const noexcept {
    return native_handle()->device->transport_type == IBV_TRANSPORT_IWARP;
  }

  /// The kernel's software RoCE, by the vendor it gives, whatever the device is called.
  bool is_rxe() const noexcept { return attributes().vendor_id == 0xff'ffff; }

  /// The kernel's software iWARP, in the same way.
  bool is_siw() const noexcept { return attributes().vendor_id == 0x62'6d74; }

  /// Errors: EINVAL for a port the device does not have; the message names the port and how many
  /// there are.
  result<ibv_port_attr> port(std::uint8_t number) const {
    ibv_port_attr attributes{};
    errno = 0;
    const int failed = returned_errno(table().query_port(native_handle(), number, &attributes));
    BOOST_OUTCOME_TRY(verbs::checked(failed, [&] {
      return "cannot query port " + std::to_string(number) + " of " + name() + ", which has " +
             std::to_string(state_->attributes.phys_port_cnt);
    }));
    return attributes;
  }

  /// The GIDs of a port. Empty places and entries that can not be read are left out, so an
  /// entry's number is its gid_index, not its place here.
  result<std::vector<ibv_gid_entry>> gids(std::uint8_t port_number) const {
    BOOST_OUTCOME_TRY(auto attributes, port(port_number));
    std::vector<ibv_gid_entry> found;
    for (int index = 0; index < attributes.gid_tbl_len; ++index) {
      ibv_gid_entry entry{};
      if (table().query_gid(native_handle(), port_number, static_cast<std::uint32_t>(index),
                            &entry) != 0) {
        continue;
      }
      if ((entry.gid.global.subnet_prefix | entry.gid.global.interface_id) != 0) {
        found.push_back(entry);
      }
    }
    return found;
  }

  /// Errors: errc::moved_from with `what` was asked of it, for one that was moved from or closed.
  result<void> usable(const char* what) const {
    if (state_ == nullptr) return error{errc::moved_from, what};
    return success();
  }

  /// Success for 0; else the error of a call that has just returned null, with what the device
  /// says of it where it says more than the errno.
  template <class Describe>
  result<void> checked(int number, Describe&& what) const {
    if (number == 0) return success();
    if (const auto said = table().why(native_handle())) return said->within(what());
    return system_failure(number, what());
  }

  ibv_context* native_handle() const noexcept {
    return state_ ? state_->context.native() : nullptr;
  }
  const control_table& table() const noexcept { return state_->context.table(); }

  /// What keeps the device open; for children.
  std::shared_ptr<const void> keep() const noexcept { return state_; }

  /// Another owner of the same open device.
  device share() const noexcept {
    device other;
    other.state_ = state_;
    return other;
  }

  /// Closes now. Errors: EBUSY while anything made on it lives; it then stays open.
  result<void> close() {
    if (state_ == nullptr) return success();
    if (state_.use_count() > 1) {
      return system_failure(EBUSY,
                            "cannot close the device " + name() + ": objects made on it live");
    }
    BOOST_OUTCOME_TRY(state_->context.close());
    state_.reset();
    return success();
  }

  device(device&&) noexcept = default;
  device& operator=(device&&) noexcept = default;
  device(const device&) = delete;
  device& operator=(const device&) = delete;

 private:
  struct state {
    state(ibv_context* native, const control_table& table)
        : context{native, table, "device", [](const control_table& calls, ibv_context* opened) {
                    return minus_one_errno(calls.close_device(opened));
                  }} {}
    object<ibv_context> context;
    ibv_device_attr attributes{};
  };
  std::shared_ptr<state> state_;
};

}  // namespace verbena::verbs
