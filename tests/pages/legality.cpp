// SPDX-License-Identifier: BSL-1.0
// Prints docs/legality.md.
#include <cstdio>
#include <string>
#include <vector>

#include <verbena/operation/legality.hpp>

namespace vb = verbena;
namespace legality = verbena::legality;

namespace {

std::string row(const std::string& name, const auto& cells) {
  std::string line = "| " + name + " |";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string mark(bool works) { return works ? "yes" : "–"; }

std::string table() {
  std::vector<std::string> head;
  for (const auto& transport : legality::transports) {
    head.push_back("`" + std::string{transport.name} + "`");
  }
  head.insert(head.end(),
              {"`solicited`", "inline", "`divided`", "local memory", "the peer's region"});
  std::string text = row("operation", head);
  text += "|" + std::string(3, '-');
  for (std::size_t i = 0; i < head.size(); ++i) text += "|---";
  text += "|\n";
  for (const auto& rules : legality::operations) {
    std::vector<std::string> cells;
    for (const auto& transport : legality::transports) {
      cells.push_back(mark(legality::carries(transport.type, rules.what)));
    }
    cells.push_back(mark(rules.solicited));
    cells.push_back(mark(rules.inlined));
    cells.push_back(mark(rules.divided));
    cells.push_back(rules.fills_local ? "local write" : "any");
    cells.push_back(rules.remote == vb::rights{} ? "–" : vb::to_string(rules.remote));
    text += row(vb::to_string(rules.what), cells);
  }
  return text;
}

std::string transports() {
  std::string text =
      row("transport",
          std::vector<std::string>{"`fence`", "each send names its peer", "in front of a message"});
  text += "|---|---|---|---|\n";
  for (const auto& transport : legality::transports) {
    text += row("`" + std::string{transport.name} + "`",
                std::vector<std::string>{mark(transport.fence), mark(transport.addressed),
                                         std::to_string(transport.prefix_bytes) + " bytes"});
  }
  return text;
}

}  // namespace

int main() {
  const std::string page = R"(# What works on what

Made from `include/verbena/operation/legality.hpp` by `tests/pages/legality.cpp`; a test compares them. What has no "yes" here does not compile, and
the compiler says what to use instead.

)" + table() + R"(
`solicited`, inline and `divided` are what a request may ask for on any transport that carries it. A fence is for whatever goes to the send queue:

)" + transports();
  std::fputs(page.c_str(), stdout);
}
