// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <verbena/memory/rights.hpp>
#include <verbena/memory/view.hpp>
#include <verbena/verbs/memory_region.hpp>
#include <verbena/verbs/memory_uses.hpp>

namespace verbena {

/// The flags memory with these rights is registered with on a device. iWARP reads write into the
/// local sink as if the peer did, so writable memory carries remote write there (RFC 5040).
inline int registration_flags(rights of, bool iwarp) noexcept {
  const bool read_sink = iwarp && allows(of, rights::local_write);
  return access_flags(read_sink ? of | rights::remote_write : of);
}

/// Registers the user's own memory for as long as this lives. Move-only. The memory is the
/// user's: it and this object must outlive every work request on it, which builds with assertions
/// check. Read-only memory (const T) can be a source or remote-readable.
template <class T, rights Rights>
class registration {
 public:
  static_assert(!std::is_const_v<T> || !allows(Rights, rights::local_write),
                "const memory can only be a source or remote_readable: this role writes to it");
  static_assert(std::is_trivially_copyable_v<T>,
                "registered memory holds trivially copyable elements");
  using element_type = T;
  static constexpr rights granted = Rights;

  /// Errors: those of ibv_reg_mr, with size and limit; errc::not_supported for atomics on iWARP.
  static result<registration> create(const verbs::protection_domain& domain, std::span<T> memory) {
    const verbs::device& on = domain.device();
    BOOST_OUTCOME_TRY(on.usable("registering memory on a device"));
    if (allows(Rights, rights::remote_atomic) && on.is_iwarp()) {
      return error{errc::not_supported, "remote atomics on " + on.name() + " (iWARP)"};
    }
    if (memory.empty()) {
      return system_failure(EINVAL, "cannot register an empty span");
    }
    void* address = const_cast<std::remove_const_t<T>*>(memory.data());
    BOOST_OUTCOME_TRY(auto region,
                      verbs::memory_region::create(domain, address, memory.size_bytes(),
                                                   registration_flags(Rights, on.is_iwarp())));
    return registration{memory, std::move(region), domain.id()};
  }

  /// Empty, with no key and of no domain, once closed or moved from.
  const verbena::view<T, Rights>& view() const noexcept { return view_; }

  /// The key the peer uses; for descriptors. 0 once closed or moved from.
  rkey remote_key() const noexcept {
    const ibv_mr* native = region_.native_handle();
    return rkey{native == nullptr ? 0 : native->rkey};
  }

  T* data() const noexcept { return view_.data(); }
  std::size_t size() const noexcept { return view_.size(); }
  std::span<T> elements() const noexcept { return view_.elements(); }
  ibv_mr* native_handle() const noexcept { return region_.native_handle(); }

  /// Deregisters now. Errors: the errno of ibv_dereg_mr; the registration then stays.
  result<void> close() {
    expect_unused();
    BOOST_OUTCOME_TRY(region_.close());
    view_ = nothing;
    return success();
  }

  registration(registration&& other) noexcept
      : view_{std::exchange(other.view_, nothing)}, region_{std::move(other.region_)} {}
  registration& operator=(registration&& other) noexcept {
    expect_unused();
    view_ = std::exchange(other.view_, nothing);
    region_ = std::move(other.region_);
    return *this;
  }
  ~registration() { expect_unused(); }

 private:
  void expect_unused() const noexcept {
#ifndef NDEBUG
    if (native_handle() != nullptr) {
      verbs::memory_uses::of_process().expect_none(view_.domain(),
                                                   static_cast<std::uint32_t>(view_.key()));
    }
#endif
  }

  static constexpr verbena::view<T, Rights> nothing{{}, lkey{0}, 0};

  registration(std::span<T> elements, verbs::memory_region region, std::uint32_t domain) noexcept
      : view_{elements, lkey{region.native_handle()->lkey}, domain}, region_{std::move(region)} {}

  verbena::view<T, Rights> view_;
  verbs::memory_region region_;
};

}  // namespace verbena
