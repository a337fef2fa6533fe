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
/// Keeps its protection domain. When it is destroyed while requests posted in that domain have not
/// completed, its memory stays registered and mapped until they have or their queue pairs are gone.
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
    BOOST_OUTCOME_TRY(domain.device().usable("allocating memory on a device"));
    domain.lingering().collect();
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
    BOOST_OUTCOME_TRY(domain.device().checked(verbs::null_errno(memory.get()), [&] {
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

  /// What the destructor does, with an answer. Errors: as of registration; the buffer then stays.
  result<void> close() {
    if (native_handle() == nullptr) return success();
    if (domain().lingering().in_use()) {
      give_back();
      return success();
    }
    BOOST_OUTCOME_TRY(registered_.close());
    memory_.reset();
    return success();
  }

  buffer(buffer&&) noexcept = default;
  buffer& operator=(buffer&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    registered_ = std::move(other.registered_);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~buffer() { give_back(); }

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

  /// The registration goes first.
  struct block {
    storage memory;
    registration<T, Rights> registered;
  };

  const verbs::protection_domain& domain() const noexcept { return memory_.get_deleter().domain; }
  void give_back() {
    if (native_handle() == nullptr) return;
    const verbs::protection_domain keeps_what_is_called = domain().share();
    keeps_what_is_called.lingering().keep(
        std::make_shared<block>(std::move(memory_), std::move(registered_)));
  }

  storage memory_;
  registration<T, Rights> registered_;
};

}  // namespace verbena
