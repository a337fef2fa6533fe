// SPDX-License-Identifier: BSL-1.0
//
// Time from the program's line to the provider's call and back, on a device that accepts
// everything, of every comparison of tests/codegen: NAME/by_hand, NAME/verbena and, where there is
// one, NAME/usual. Each time includes what `repeat` does between two rounds, the same for all.
// Times are for reading; tests/codegen decides by counts.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "../tests/codegen/accepting.hpp"
#include "../tests/codegen/comparison.hpp"

namespace {

void time_side(benchmark::State& run, const comparison& pair, const measured& side) {
  constexpr int batch = 1000;
  pair.prepare();
  accepting::instance.accept();  // prepare may have put functions there that note what they get
  const std::uint64_t first = side.repeat(1);
  std::uint64_t last = first;
  while (run.KeepRunningBatch(batch)) last = side.repeat(batch);
  if (last != first) run.SkipWithError("a later round does something else than the first");
}

/// What a round costs without the function under measurement.
constexpr const char* nothing = "nothing";
void time_nothing(benchmark::State& run) {
  struct alignas(64) books {
    std::array<std::byte, 64> bytes{};
  };
  constexpr int batch = 1000;
  books one;
  while (run.KeepRunningBatch(batch)) {
    repeat(batch, std::array{&one}, +[](books*) { return std::uint64_t{0}; }, &one);
  }
}

std::vector<comparison> every_comparison() {
  std::vector<comparison> all;
  for (auto* registry : {post_comparisons, built_comparisons, prepared_comparisons,
                         datagram_comparisons, poll_comparisons}) {
    for (comparison& each : registry()) all.push_back(std::move(each));
  }
  return all;
}

void add(const comparison& pair) {
  const auto add_side = [&](const char* side, const measured& what) {
    benchmark::RegisterBenchmark(
        (pair.name + "/" + side).c_str(),
        [&pair, &what](benchmark::State& run) { time_side(run, pair, what); });
  };
  add_side("by_hand", pair.twin);
  add_side("verbena", pair.verbena);
  if (pair.usual.repeat) add_side("usual", pair.usual);
}

/// The words that a comparison's name begins with and that say how is posted, or "poll".
std::string group_of(std::string_view name) {
  constexpr std::array<std::string_view, 9> known{"built",  "prepared",  "datagram",
                                                  "ledger", "unchecked", "every",
                                                  "one_in", "asked",     "unasked"};
  if (name.starts_with("poll")) return "poll";
  std::string group;
  for (std::size_t end; (end = name.find(' ')) != name.npos; name.remove_prefix(end + 1)) {
    const std::string_view word = name.substr(0, end);
    if (std::ranges::find(known, word) == known.end()) break;
    if (group.empty() && (word == "ledger" || word == "unchecked")) group = "list ";
    group.append(word) += ' ';
  }
  return group;
}

/// Each benchmark as Google Benchmark prints it if they were chosen, and then ratios for each
/// group.
class reporter : public benchmark::ConsoleReporter {
 public:
  reporter(const std::vector<comparison>& pairs, bool prints_each)
      : ConsoleReporter{OO_None}, pairs_{pairs}, prints_each_{prints_each} {}

  bool missed() const { return missed_; }

  bool ReportContext(const Context& context) override {
    if (!prints_each_) {
      std::printf("%zu pairs, about two minutes; --benchmark_filter=REGEX prints those it names\n",
                  pairs_.size());
      std::fflush(stdout);
    }
    return ConsoleReporter::ReportContext(context);
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    if (prints_each_) ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      const std::string& name = run.run_name.function_name;
      const double nanoseconds = run.GetAdjustedCPUTime();
      if (nanoseconds <= 0) {  // skipped with an error
        std::fprintf(stderr, "%s was not timed\n", name.c_str());
        missed_ = true;
        continue;
      }
      const auto [known, is_new] = fastest_.try_emplace(name, nanoseconds);
      if (!is_new) known->second = std::min(known->second, nanoseconds);
    }
  }

  void Finalize() override {
    std::map<std::string, ratios> groups;
    std::vector<std::string> order;
    for (const comparison& pair : pairs_) {
      const double ours = fastest(pair.name + "/verbena");
      const double by_hand = fastest(pair.name + "/by_hand");
      const double usual = fastest(pair.name + "/usual");
      if (ours == 0 || by_hand == 0) continue;
      const std::string name = group_of(pair.name);
      const auto [group, is_new] = groups.try_emplace(name);
      if (is_new) order.push_back(name);
      group->second.times.push_back(by_hand);
      group->second.to_hand.push_back(ours / by_hand);
      if (usual != 0) group->second.to_usual.push_back(ours / usual);
    }
    std::printf("\n%-28s %6s %8s   %-22s   %s\n%-28s %6s %8s   %6s %7s %7s   %7s\n", "", "",
                "by hand", "verbena / by hand", "verbena / usual", "", "pairs", "ns", "lower",
                "median", "upper", "median");
    for (const std::string& name : order) {
      ratios& of = groups[name];
      std::printf("%-28s %6zu %8.1f   %6.2f %7.2f %7.2f", name.c_str(), of.to_hand.size(),
                  part(of.times, 0.5), part(of.to_hand, 0.25), part(of.to_hand, 0.5),
                  part(of.to_hand, 0.75));
      if (of.to_usual.empty()) {
        std::puts("");
      } else {
        std::printf("   %7.2f\n", part(of.to_usual, 0.5));
      }
    }
    if (const double round = fastest(nothing); round != 0) {
      std::printf(
          "%.1f ns of a post are the call and what stands around it; of a poll somewhat more.\n",
          round);
    }
    std::puts("Of CPU times, for reading: the counts of tests/codegen decide.");
  }

 private:
  struct ratios {
    std::vector<double> times;
    std::vector<double> to_hand;
    std::vector<double> to_usual;
  };

  double fastest(const std::string& name) const {
    const auto found = fastest_.find(name);
    return found == fastest_.end() ? 0 : found->second;
  }

  static double part(std::vector<double>& of, double share) {
    const auto place =
        of.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(of.size() - 1));
    std::ranges::nth_element(of, place);
    return *place;
  }

  const std::vector<comparison>& pairs_;
  std::map<std::string, double> fastest_;  ///< of its repetitions
  bool prints_each_;
  bool missed_ = false;
};

}  // namespace

int main(int count, char** words) {
  // In front, so that what the caller says goes.
  std::string short_time = "--benchmark_min_time=0.02";
  std::vector<char*> all{words, words + count};
  all.insert(all.begin() + 1, short_time.data());
  all.push_back(nullptr);
  count = static_cast<int>(all.size() - 1);
  benchmark::Initialize(&count, all.data());
  if (benchmark::ReportUnrecognizedArguments(count, all.data())) return 2;

  const std::vector<comparison> pairs = every_comparison();
  benchmark::RegisterBenchmark(nothing, time_nothing);
  for (const comparison& each : pairs) add(each);
  reporter shown{pairs, !benchmark::GetBenchmarkFilter().empty()};
  benchmark::RunSpecifiedBenchmarks(&shown);
  benchmark::Shutdown();
  return shown.missed() ? 1 : 0;
}
