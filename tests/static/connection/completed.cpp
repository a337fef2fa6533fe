// SPDX-License-Identifier: BSL-1.0
#include <verbena/connection/completed.hpp>
#include <verbena/connection/failed.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>

namespace vb = verbena;

namespace {

template <class T>
concept has_size = requires(const T& of) { of.size(); };
template <class T>
concept has_bytes = requires(const T& of) { of.bytes(); };
template <class T>
concept has_an_immediate = requires(const T& of) { of.immediate(); };
template <class T>
concept has_old_value = requires(const T& of) { of.old_value(); };

}  // namespace

// FC-07: only what is defined for a completion can be asked of it.
static_assert(has_size<vb::completed<vb::receive>> && has_bytes<vb::completed<vb::receive>>);
static_assert(has_size<vb::completed<vb::read>> && !has_bytes<vb::completed<vb::read>>);
static_assert(!has_size<vb::completed<vb::send>> && !has_bytes<vb::completed<vb::send>>);
static_assert(!has_size<vb::completed<vb::write>> && !has_bytes<vb::completed<vb::write>>);
static_assert(!has_size<vb::failed> && !has_bytes<vb::failed>);

static_assert(has_an_immediate<vb::completed<vb::receive>>);
static_assert(!has_an_immediate<vb::completed<vb::write_with_immediate>>);
static_assert(has_old_value<vb::completed<vb::compare_and_swap>>);
static_assert(has_old_value<vb::completed<vb::fetch_and_add>>);
static_assert(!has_old_value<vb::completed<vb::receive>> && !has_old_value<vb::failed>);

// A failure keeps nothing of the provider's entry but the two words that are defined.
static_assert(sizeof(vb::failed) <= 16);

static_assert(vb::completed<vb::receive>::what == vb::operation::receive);
static_assert(vb::completed<vb::write>::what == vb::operation::write);
