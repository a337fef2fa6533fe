// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <verbena/memory/buffer.hpp>
#include <verbena/memory/registration.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/policy/errors/throwing.hpp>
#include <verbena/verbs/device_list.hpp>

namespace verbena {

/// An open RDMA device with a protection domain of its own, in which its memory and, unless they
/// are given another, its endpoints live. Move-only; what is made on it keeps it open. Const
/// members may be called from any thread.
template <errors_policy Errors = errors::throwing>
class basic_device {
 public:
  /// Takes over an opened device; see open_device(). Errors: those of ibv_alloc_pd.
  static result<basic_device> create(verbs::device opened) {
    BOOST_OUTCOME_TRY(auto domain, verbs::protection_domain::create(opened));
    return basic_device{std::move(domain)};
  }

  /// Page-aligned, zeroed, registered memory of `count` bytes with the rights of all `Roles`.
  template <role... Roles>
  auto allocate(std::size_t count) const {
    return allocate<std::byte, Roles...>(count);
  }
  /// The same of `count` elements of type T.
  template <class T, role... Roles>
    requires(!role<T>)
  auto allocate(std::size_t count) const {
    static_assert(sizeof...(Roles) > 0,
                  "say what the memory is for: source, sink, remote_readable, "
                  "remote_writable or remote_atomic");
    return Errors::deliver(buffer<T, grants_of<Roles...>>::create(domain_, count));
  }

  /// Registers memory of the program's own, which must outlive what is returned: an array, vector,
  /// span or other contiguous range with a name, or a view of one.
  template <role... Roles, std::ranges::contiguous_range Memory>
  auto register_memory(Memory&& memory) const {
    static_assert(std::is_lvalue_reference_v<Memory> || std::ranges::view<Memory>,
                  "the memory would be gone at once: give it a name");
    using element = std::remove_reference_t<std::ranges::range_reference_t<Memory>>;
    static_assert(sizeof...(Roles) > 0,
                  "say what the memory is for: source, sink, remote_readable, "
                  "remote_writable or remote_atomic");
    return Errors::deliver(
        registration<element, grants_of<Roles...>>::create(domain_, std::span<element>{memory}));
  }

  std::string name() const { return domain_.device().name(); }
  const verbs::protection_domain& domain() const noexcept { return domain_; }
  operator const verbs::protection_domain&() const noexcept { return domain_; }
  operator const verbs::device&() const noexcept { return domain_.device(); }
  ibv_context* native_handle() const noexcept { return domain_.device().native_handle(); }

 private:
  explicit basic_device(verbs::protection_domain domain) noexcept : domain_{std::move(domain)} {}
  verbs::protection_domain domain_;
};

using device = basic_device<>;

/// Opens the device called `name` ("mlx5_0", "rxe0", "soft"); without a name the one that the
/// environment variable VERBENA_DEVICE names, or else the only one there is.
/// Errors: errc::no_device with the names of the devices present; errno of the opening.
template <errors_policy Errors = errors::throwing>
[[nodiscard]] auto open_device(std::string_view name = {}) {
  const auto open = [&]() -> result<basic_device<Errors>> {
    BOOST_OUTCOME_TRY(auto opened, verbs::open(name));
    return basic_device<Errors>::create(std::move(opened));
  };
  return Errors::deliver(open());
}

}  // namespace verbena
