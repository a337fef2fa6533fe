// SPDX-License-Identifier: BSL-1.0
#include <type_traits>

#include <verbena/verbs/cm_event_channel.hpp>
#include <verbena/verbs/cm_id.hpp>
#include <verbena/verbs/completion_channel.hpp>
#include <verbena/verbs/memory_region.hpp>
#include <verbena/verbs/queue_pair.hpp>
#include <verbena/verbs/thread_domain.hpp>

namespace verbs = verbena::verbs;

template <class... Owners>
constexpr bool move_only =
    ((std::is_nothrow_move_constructible_v<Owners> && std::is_nothrow_move_assignable_v<Owners> &&
      !std::is_copy_constructible_v<Owners> && !std::is_copy_assignable_v<Owners>) &&
     ...);

static_assert(move_only<verbs::device, verbs::protection_domain, verbs::memory_region,
                        verbs::completion_channel, verbs::queue_pair, verbs::thread_domain,
                        verbs::cm_event_channel, verbs::cm_id>);
