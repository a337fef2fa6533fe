// SPDX-License-Identifier: BSL-1.0
// The README's own policy, with all that a connection makes of it.
#include "own_policy.cpp"

template class verbena::basic_connection<polite_connection::policies>;

void use(polite_connection& link, vb::buffer<char, vb::rights::local_read>& text) {
  if (link.post(vb::send(text))) link.wait(std::chrono::seconds{1});
}
