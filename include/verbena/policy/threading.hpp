// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

namespace verbena {

template <class M>
concept basic_lockable = requires(M& mutex) {
  mutex.lock();
  mutex.unlock();
};

template <class P>
concept has_mutex =
    basic_lockable<typename P::mutex> && std::default_initializable<typename P::mutex>;

template <class P>
concept tells_whether_any_thread_posts = requires {
  { P::any_thread } -> std::convertible_to<bool>;
};

/// Axis "threading": what guards a connection's posts. `mutex` is held for the whole of a post;
/// `any_thread` says that another thread may poll meanwhile; without it the provider is asked to
/// take no locks either.
template <class P>
concept threading_policy = has_mutex<P> && tells_whether_any_thread_posts<P>;

}  // namespace verbena
