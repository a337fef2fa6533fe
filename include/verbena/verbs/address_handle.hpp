// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <memory>
#include <utility>

#include <verbena/verbs/protection_domain.hpp>

namespace verbena::verbs {

/// Owner of an address handle: the way to a port, for datagrams (ibv_create_ah(3)). Move-only;
/// keeps its protection domain, and outlives the requests posted before it goes, which use it.
class address_handle {
 public:
  address_handle() = default;

  /// Errors: errc::not_supported where the device has none; the errno of ibv_create_ah.
  static result<address_handle> create(const protection_domain& domain, ibv_ah_attr to) {
    const verbs::device& on = domain.device();
    const control_table& calls = on.table();
    if (calls.create_ah == nullptr) {
      return error{errc::not_supported, "address handles on " + on.name()};
    }
    errno = 0;
    ibv_ah* native = calls.create_ah(domain.native_handle(), &to);
    BOOST_OUTCOME_TRY(on.checked(
        null_errno(native), [&] { return "cannot create an address handle on " + on.name(); }));
    address_handle made;
    made.domain_ = domain.share();
    made.state_ = std::make_shared<object<ibv_ah>>(
        native, calls, "address handle",
        [](const control_table& table, ibv_ah* held) {
          return returned_errno(table.destroy_ah(held));
        },
        object<ibv_ah>::parents{domain.keep()});
    return made;
  }

  ibv_ah* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }

  address_handle(address_handle&&) noexcept = default;
  address_handle& operator=(address_handle&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    domain_ = std::move(other.domain_);
    state_ = std::move(other.state_);
    return *this;
  }
  ~address_handle() { give_back(); }

 private:
  void give_back() {
    if (state_ != nullptr) domain_.lingering().keep(std::move(state_));
  }

  protection_domain domain_;
  std::shared_ptr<object<ibv_ah>> state_;
};

}  // namespace verbena::verbs
