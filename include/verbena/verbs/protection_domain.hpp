// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/device.hpp>
#include <verbena/verbs/lingering_memory.hpp>

namespace verbena::verbs {

/// Owner of a protection domain: memory and queue pairs work together only within one. Move-only;
/// what is made in it keeps it, so it may go first. Const members may be called from any thread.
class protection_domain {
 public:
  protection_domain() = default;

  static result<protection_domain> create(const verbs::device& on) {
    BOOST_OUTCOME_TRY(on.usable("allocating a protection domain on a device"));
    errno = 0;
    ibv_pd* native = on.table().alloc_pd(on.native_handle());
    BOOST_OUTCOME_TRY(checked(
        null_errno(native), [&] { return "cannot allocate a protection domain on " + on.name(); }));
    protection_domain made;
    made.device_ = on.share();
    made.state_ = std::make_shared<state>(native, on);
    return made;
  }

  const verbs::device& device() const noexcept { return device_; }

  /// Tells domains of this process apart; never 0, never used twice. Memory and queue pairs carry
  /// it, so that a mix-up is found before the adapter finds it.
  std::uint32_t id() const noexcept { return state_ ? state_->id : 0; }

  ibv_pd* native_handle() const noexcept { return state_ ? state_->domain.native() : nullptr; }
  std::shared_ptr<const void> keep() const noexcept { return state_; }

  /// For owners of memory and of queue pairs in it; not of one that is empty.
  lingering_memory& lingering() const noexcept { return state_->lingering; }

  protection_domain share() const noexcept {
    protection_domain other;
    other.device_ = device_.share();
    other.state_ = state_;
    return other;
  }

  /// Deallocates now. Errors: EBUSY while anything made in it lives; it then stays.
  result<void> close() {
    if (state_ == nullptr) return success();
    state_->lingering.collect();
    if (state_.use_count() > 1) {
      return system_failure(EBUSY,
                            "cannot close the protection domain: memory or queue pairs in it live");
    }
    BOOST_OUTCOME_TRY(state_->domain.close());
    state_.reset();
    device_ = {};
    return success();
  }

 private:
  struct state {
    state(ibv_pd* native, const verbs::device& on)
        : domain{native,
                 on.table(),
                 "protection domain",
                 [](const control_table& calls, ibv_pd* held) {
                   return returned_errno(calls.dealloc_pd(held));
                 },
                 {on.keep()}} {}
    object<ibv_pd> domain;
    std::uint32_t id = next_id();
    lingering_memory lingering;
  };
  static std::uint32_t next_id() noexcept {
    static std::atomic<std::uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  verbs::device device_;
  std::shared_ptr<state> state_;
};

}  // namespace verbena::verbs
