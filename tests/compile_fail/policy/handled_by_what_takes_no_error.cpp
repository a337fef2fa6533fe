// SPDX-License-Identifier: BSL-1.0
// expect: errors::handled_by<F> calls F{}(const vb::error&): F must be default-constructible and
// take an error
#include <verbena/verbena.hpp>

namespace vb = verbena;

struct taking_errors {
  void operator()(const vb::error&) const {}
};
struct taking_numbers {
  void operator()(int*) const {}
};

#ifdef FIXED
void use(vb::connection<vb::errors::handled_by<taking_errors>>&) {}
#else
void use(vb::connection<vb::errors::handled_by<taking_numbers>>&) {}
#endif
