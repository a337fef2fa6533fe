// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/base.hpp>
#include <boost/outcome/try.hpp>

#include <verbena/verbs/failure.hpp>

namespace verbena {

/// What `.value()` of a result that holds an error does: raise().
struct raise_on_access : BOOST_OUTCOME_V2_NAMESPACE::policy::base {
  template <class Impl>
  static constexpr void wide_value_check(Impl&& self) {
    if (!base::_has_value(self)) raise(base::_error(self));
  }
  template <class Impl>
  static constexpr void wide_error_check(Impl&& self) {
    if (!base::_has_error(self)) {
      raise({std::make_error_code(std::errc::invalid_argument),
             "error() of a result that holds a value"});
    }
  }
  template <class Impl>
  static constexpr void wide_exception_check(Impl&&) {}
};

/// What set-up functions return inside the library and, under errors::returning, to the user:
/// a T or an error. Holds the value by move; never allocates beyond the error's text.
template <class T>
using result = BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, error, raise_on_access>;

/// The value of a result<void> that succeeded.
inline auto success() noexcept { return BOOST_OUTCOME_V2_NAMESPACE::success(); }

}  // namespace verbena
