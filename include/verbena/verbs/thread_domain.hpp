// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/protection_domain.hpp>

namespace verbena::verbs {

/// Owner of a thread domain, and of the parent domain by which a queue pair is made in it
/// (ibv_alloc_td(3), ibv_alloc_parent_domain(3)): the provider takes no locks for what is. Memory
/// stays in the protection domain. Move-only; what is made in it keeps it, so it may go first.
class thread_domain {
 public:
  thread_domain() = default;

  /// One that is empty where the provider has none, or none left: all that is lost is the saving
  /// of a lock. Errors: any other errno of the verbs.
  static result<thread_domain> create_if_any(const protection_domain& domain) {
    const verbs::device& on = domain.device();
    const control_table& calls = on.table();
    ibv_td_init_attr plain{};
    errno = 0;
    ibv_td* const thread = calls.alloc_td(on.native_handle(), &plain);
    if (thread == nullptr) return nothing_or_error(on, "thread domain");
    auto held = std::make_shared<object<ibv_td>>(
        thread, calls, "thread domain",
        [](const control_table& table, ibv_td* gone) {
          return returned_errno(table.dealloc_td(gone));
        },
        object<ibv_td>::parents{domain.keep()});

    ibv_parent_domain_init_attr of{};
    of.pd = domain.native_handle();
    of.td = thread;
    errno = 0;
    ibv_pd* const parent = calls.alloc_parent_domain(on.native_handle(), &of);
    if (parent == nullptr) return nothing_or_error(on, "parent domain");
    thread_domain made;
    made.state_ = std::make_shared<object<ibv_pd>>(
        parent, calls, "parent domain",
        [](const control_table& table, ibv_pd* gone) {
          return returned_errno(table.dealloc_pd(gone));
        },
        object<ibv_pd>::parents{std::move(held)});
    return made;
  }

  /// The parent domain; null where there is none.
  ibv_pd* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }
  std::shared_ptr<const void> keep() const noexcept { return state_; }

  thread_domain(thread_domain&&) noexcept = default;
  thread_domain& operator=(thread_domain&&) noexcept = default;
  thread_domain(const thread_domain&) = delete;
  thread_domain& operator=(const thread_domain&) = delete;

 private:
  static result<thread_domain> nothing_or_error(const verbs::device& on, const char* what) {
    const int number = null_errno(nullptr);
    // EAGAIN: an adapter of mlx5 has no more doorbell pages.
    for (const int none : {EOPNOTSUPP, ENOSYS, ENOMEM, ENOSPC, EAGAIN}) {
      if (number == none) return thread_domain{};
    }
    return on
        .checked(number,
                 [&] { return std::string{"cannot allocate a "} + what + " on " + on.name(); })
        .error();
  }

  std::shared_ptr<object<ibv_pd>> state_;
};

}  // namespace verbena::verbs
