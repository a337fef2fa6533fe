// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <verbena/verbs/call.hpp>
#include <verbena/verbs/control_table.hpp>

namespace verbena {

/// Called when a destructor could not destroy a verbs object, which then leaks.
using destroy_failure_hook = void (*)(const error&);

namespace verbs {

inline std::atomic<destroy_failure_hook> destroy_failure{
    [](const error& value) { std::fprintf(stderr, "verbena: %s\n", value.message().c_str()); }};

}  // namespace verbs

/// Sets what destructors do with a failure and returns what they did before; the default prints
/// a line on stderr. Thread safe.
inline destroy_failure_hook on_destroy_failure(destroy_failure_hook hook) noexcept {
  return verbs::destroy_failure.exchange(hook);
}

namespace verbs {

/// One verbs object with what must outlive it. Destroys the object first and lets go of the
/// parents afterwards, so that children go before parents in whatever order users drop them.
/// Not movable: owners share it through std::shared_ptr, children hold a reference.
template <class Native>
class object {
 public:
  /// Destroys a Native and returns 0 or a positive errno.
  using destroyer = int (*)(const control_table&, Native*);
  using parents = std::array<std::shared_ptr<const void>, 3>;

  object(Native* native, const control_table& table, const char* name, destroyer destroy,
         parents held = {})
      : native_{native},
        table_{&table},
        name_{name},
        destroy_{destroy},
        parents_{std::move(held)} {}
  object(const object&) = delete;
  object& operator=(const object&) = delete;
  ~object() {
    if (auto closed = close(); !closed) destroy_failure.load()(closed.error());
  }

  Native* native() const noexcept { return native_; }
  const control_table& table() const noexcept { return *table_; }

  /// Destroys now. After a failure the object is as it was and may be closed again.
  result<void> close() {
    if (native_ == nullptr) return success();
    errno = 0;
    if (const int number = destroy_(*table_, native_); number != 0) {
      return system_failure(number, std::string{"cannot destroy the "} + name_);
    }
    native_ = nullptr;
    parents_ = {};
    return success();
  }

 private:
  Native* native_;
  const control_table* table_;
  const char* name_;
  destroyer destroy_;
  parents parents_;
};

/// Closes `held` when nothing else uses it and lets go of it; otherwise says how many do.
template <class Object>
result<void> close_shared(std::shared_ptr<Object>& held, const char* name) {
  if (held == nullptr) return success();
  if (const long others = held.use_count() - 1; others > 0) {
    return system_failure(EBUSY, std::string{"cannot close the "} + name + ": used by " +
                                     std::to_string(others) + " other object" +
                                     (others == 1 ? "" : "s"));
  }
  BOOST_OUTCOME_TRY(held->close());
  held.reset();
  return success();
}

}  // namespace verbs
}  // namespace verbena
