// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <verbena/operation/pieces.hpp>

namespace verbena {

/// The bytes of what an atomic changes, and the alignment of its address (ibv_post_send(3)).
inline constexpr std::size_t atomic_size = 8;

template <class Local>
inline constexpr std::size_t element_size = 0;
template <class Held>
inline constexpr std::size_t element_size<pieces<Held>> =
    sizeof(typename std::remove_cvref_t<Held>::element_type);

/// Whether an atomic works on 8-byte objects, and gives the old one to one piece of such.
template <class Local, class Remote>
inline constexpr bool fits_atomic =
    element_size<Local> == atomic_size &&
    sizeof(typename std::remove_cvref_t<Remote>::element_type) == atomic_size;

}  // namespace verbena
