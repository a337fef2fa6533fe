// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/protection_domain.hpp>

namespace verbena::verbs {

/// Owner of a registration (not of the memory). Move-only; keeps its protection domain.
class memory_region {
 public:
  memory_region() = default;

  /// Registers `length` bytes at `address` with ibv_access_flags `access` (ibv_reg_mr(3)).
  /// Errors: the errno of the call, with the size and, for ENOMEM, the locked-memory limit.
  static result<memory_region> create(const protection_domain& domain, void* address,
                                      std::size_t length, int access) {
    const control_table& calls = domain.device().table();
    errno = 0;
    ibv_mr* native = calls.reg_mr(domain.native_handle(), address, length, access);
    if (const int number = null_errno(native); number != 0) {
      const verbs::device& on = domain.device();
      std::string what = "cannot register " + std::to_string(length) + " bytes on " + on.name();
      if (const auto said = calls.why(on.native_handle())) return said->within(what);
      return system_failure(number, std::move(what) + hint(number));
    }
    memory_region made;
    made.state_ = std::make_shared<object<ibv_mr>>(
        native, calls, "memory region",
        [](const control_table& table, ibv_mr* held) {
          return returned_errno(table.dereg_mr(held));
        },
        object<ibv_mr>::parents{domain.keep()});
    return made;
  }

  ibv_mr* native_handle() const noexcept { return state_ ? state_->native() : nullptr; }

  /// Deregisters now: work requests that still use the memory fail.
  result<void> close() { return close_shared(state_, "memory region"); }

  memory_region(memory_region&&) noexcept = default;
  memory_region& operator=(memory_region&&) noexcept = default;
  memory_region(const memory_region&) = delete;
  memory_region& operator=(const memory_region&) = delete;

 private:
  static std::string hint(int number) {
    if (number == EINVAL) return " (in huge pages the range must be aligned to their size)";
    if (number != ENOMEM && number != EAGAIN && number != EPERM) return {};
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
    const std::string allowed = limit.rlim_cur == RLIM_INFINITY
                                    ? std::string{"unlimited"}
                                    : std::to_string(limit.rlim_cur) + " bytes";
    return " (locked-memory limit: " + allowed + ", see ulimit -l)";
  }
  std::shared_ptr<object<ibv_mr>> state_;
};

}  // namespace verbena::verbs
