// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace verbena {

/// The policies that the hot path is instantiated with: those that differ in setup or errors only
/// share its code.
template <class Transport, class Signaling, class Posting, class Threading, class Accounting>
struct core_policies {
  using transport = Transport;
  using signaling = Signaling;
  using posting = Posting;
  using threading = Threading;
  using accounting = Accounting;
};

template <class Policies>
using core_of = core_policies<typename Policies::transport, typename Policies::signaling,
                              typename Policies::posting, typename Policies::threading,
                              typename Policies::accounting>;

}  // namespace verbena
