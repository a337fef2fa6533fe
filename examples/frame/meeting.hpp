// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbena.hpp>

namespace example {

template <class Connection>
using endpoint_of = verbena::basic_endpoint<typename Connection::policies>;

/// How the two programs find each other and part; one for each setup, that of the connection.
///   Connection connect(endpoint, regions...)   connects an endpoint and opens regions to the peer
///   void part(connection)                      once this end has got all it wanted from the peer
template <class Connection, bool UsesCm = Connection::policies::setup::uses_cm>
class meeting;

}  // namespace example
