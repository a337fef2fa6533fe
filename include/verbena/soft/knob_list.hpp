// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include <verbena/soft/knobs.hpp>
#include <verbena/verbs/result.hpp>

namespace verbena::soft {

/// Sets what a list such as "drop_message=3,iwarp=1" says; of a knob named twice the last counts.
/// `source` names the list in errors. Errors: EINVAL naming the knob, the value and what is
/// possible; knobs before it are then set.
inline result<void> set_knobs(knobs& of, std::string_view list, std::string_view source) {
  const auto wrong = [&](std::string what) {
    return error{std::make_error_code(std::errc::invalid_argument),
                 std::string{source} + " \"" + std::string{list} + "\": " + std::move(what)};
  };
  for (std::string_view rest = list; !list.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const auto found = std::find_if(knob_table.begin(), knob_table.end(),
                                    [&](const auto& each) { return each.name == name; });
    if (found == knob_table.end()) {
      std::string names;
      for (const knob_description& each : knob_table)
        names.append(names.empty() ? "" : ", ").append(each.name);
      return wrong("there is no knob \"" + std::string{name} + "\"; there are " + names);
    }
    const std::string_view text =
        equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
    std::uint32_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || value < found->least ||
        value > found->most) {
      return wrong("knob " + std::string{name} + " can not be \"" + std::string{text} + "\", but " +
                   std::to_string(found->least) + " to " + std::to_string(found->most) + " (" +
                   std::string{found->unit} + "), as in " + std::string{name} + "=" +
                   std::to_string(found->most == ~0U ? 3 : found->most));
    }
    of.*found->member = value;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return success();
}

}  // namespace verbena::soft
