// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <verbena/memory/registration.hpp>

namespace verbena {

/// Registered memory that the library owns: whole pages, zeroed, so that nothing else shares a
/// page the adapter or fork() treats specially. Move-only; views stay valid when it is moved.
/// Keeps its protection domain. Work requests on it must have completed before it is destroyed.
template <class T, rights Rights>
class buffer {
 public:
  static_assert(!std::is_const_v<T>,
                "a buffer is filled by its program: name the role source instead of const");
  static_assert(std::is_trivially_copyable_v<T>,
                "registered memory holds trivially copyable elements");
  using element_type = T;
  static constexpr rights granted = Rights;

  /// `count` elements. Errors: ENOMEM without memory, EINVAL for none, those of registration.
  static result<buffer> create(const verbs::protection_domain& domain, std::size_t count) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (count == 0 || count > (std::numeric_limits<std::size_t>::max() - page) / sizeof(T)) {
      return system_failure(EINVAL, "cannot allocate a buffer of " + std::to_string(count) +
                                        " elements of " + std::to_string(sizeof(T)) + " bytes");
    }
    const std::size_t bytes = (count * sizeof(T) + page - 1) / page * page;
    errno = 0;
    storage memory{static_cast<std::byte*>(
                       domain.device().table().allocate(domain.device().native_handle(), bytes)),
                   release{domain.share(), bytes}};
    BOOST_OUTCOME_TRY(verbs::checked(verbs::null_errno(memory.get()), [&] {
      return "cannot allocate a buffer of " + std::to_string(bytes) + " bytes on " +
             domain.device().name();
    }));
    const std::span<T> elements{reinterpret_cast<T*>(memory.get()), count};
    BOOST_OUTCOME_TRY(auto registered, registration<T, Rights>::create(domain, elements));
    return buffer{std::move(memory), std::move(registered)};
  }

  const verbena::view<T, Rights>& view() const noexcept { return registered_.view(); }
  auto first(std::size_t count) const noexcept { return view().first(count); }
  auto last(std::size_t count) const noexcept { return view().last(count); }
  auto subspan(std::size_t offset, std::size_t count = std::dynamic_extent) const noexcept {
    return view().subspan(offset, count);
  }

  T* data() const noexcept { return registered_.data(); }
  std::size_t size() const noexcept { return registered_.size(); }
  std::size_t size_bytes() const noexcept { return registered_.size() * sizeof(T); }
  std::span<T> elements() const noexcept { return registered_.elements(); }
  T& operator[](std::size_t index) const noexcept { return registered_.elements()[index]; }
  auto begin() const noexcept { return registered_.elements().begin(); }
  auto end() const noexcept { return registered_.elements().end(); }

  rkey remote_key() const noexcept { return registered_.remote_key(); }
  ibv_mr* native_handle() const noexcept { return registered_.native_handle(); }

  /// Deregisters and frees now. Errors: as of registration; the buffer then stays.
  result<void> close() {
    BOOST_OUTCOME_TRY(registered_.close());
    memory_.reset();
    return success();
  }

  buffer(buffer&&) noexcept = default;
  /// In this order: what was held is deregistered before its memory is given back.
  buffer& operator=(buffer&& other) noexcept {
    registered_ = std::move(other.registered_);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~buffer() = default;

 private:
  /// Gives memory back to the device it came from, which it keeps.
  struct release {
    verbs::protection_domain domain;
    std::size_t bytes = 0;
    void operator()(std::byte* held) const noexcept {
      domain.device().table().release(domain.device().native_handle(), held, bytes);
    }
  };
  using storage = std::unique_ptr<std::byte, release>;

  buffer(storage memory, registration<T, Rights> registered) noexcept
      : memory_{std::move(memory)}, registered_{std::move(registered)} {}

  storage memory_;
  registration<T, Rights> registered_;
};

}  // namespace verbena
