// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

namespace verbena {

template <class M>
concept basic_lockable = requires(M& mutex) {
  mutex.lock();
  mutex.unlock();
};

/// Axis "threading": what guards a connection's posts. `mutex` is held for the whole of a post.
template <class P>
concept threading_policy =
    basic_lockable<typename P::mutex> && std::default_initializable<typename P::mutex>;

}  // namespace verbena
