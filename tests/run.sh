#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. .ci/steps.sh
cores=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL=$cores CTEST_PARALLEL_LEVEL=$cores

usage() {
  cat <<'END'
Usage: tests/run.sh [--quick] [--no-packages] [PART...]

Runs every part but those named below, or the PARTs, and installs on Debian 12 what is missing for them.
One line for each step; logs in build/logs. The last line is "N passed, N failed" or "N passed, N failed, N skipped".

  lint          format, scripts
  dev           g++: unit, static, compile-fail, headers, readme, consumers, fuzzers, the software device
  tidy          clang-tidy over all headers
  noexceptions  unit and static tests built with -fno-exceptions
  clang         clang++-19: what the compiler alone decides
  asan          unit tests, fuzzers and the software device under AddressSanitizer and UndefinedBehaviorSanitizer
  release       g++ -O2: examples and benchmarks build; the machine code of both compilers; the software device
  guest         conformance and the examples on the kernel's rxe and siw, in a virtual machine

Only when named:
  ubsan         as asan, under UndefinedBehaviorSanitizer alone
  tsan          the software device under ThreadSanitizer: its unit tests, conformance, the soak

  --quick        lint and dev alone
  --no-packages  install nothing

Exit status: 0 none failed, 1 something failed, 2 wrong usage.
END
}

## What the steps do

build() { # PRESET [TARGET...]
  local preset=$1
  shift
  cmake --preset "$preset" -DVERBENA_PRECOMPILE_TESTS=ON && cmake --build --preset "$preset" ${1+--target "$@"}
}

tests() { # PRESET [ctest's arguments]
  ctest --preset "$1" --output-junit "$report" "${@:2}"
}

# Builds and tests a preset; what follows the first -- goes to ctest, what stands before it are targets.
preset() {
  local name=$1 targets=()
  shift
  while (($#)) && [[ $1 != -- ]]; do targets+=("$1"); shift; done
  if step "$name: build" build "$name" "${targets[@]}"; then
    step "$name: tests" tests "$name" "${@:2}"
  else
    skip "$name: tests" "the build failed"
  fi
}

format() {
  local files wrong
  mapfile -t files < <(git ls-files -- '*.hpp' '*.cpp')
  wrong=$(clang-format-19 --dry-run "${files[@]}" 2>&1 | sed -nE 's/^([^ ]+):[0-9]+:[0-9]+: .*/\1/p' | sort -u)
  [[ -z $wrong ]] || { printf '%s\n' "$wrong" "To format them: clang-format-19 -i FILE"; return 1; }
}

scripts() {
  local files
  mapfile -t files < <(git ls-files -z | xargs -0 grep -lE -m 1 '^#!(/usr/bin/env |/bin/)(ba)?sh|^# shellcheck shell=')
  shellcheck -x "${files[@]}"
}

# One translation unit that includes every header of the library, and the tests' own.
tidy() {
  cmake --preset dev
  clang-tidy-19 --quiet -p build/dev tests/headers/two_units/second.cpp
}

# The conformance tests that ctest knows, run in the guest. Its files are lost at its end, so the report comes out of it
# behind what ctest says.
guest_conformance() { # rxe|siw
  local known said=$report.said status=0
  known=$(ctest --preset release -N -L conformance)
  [[ $known != *'Total Tests: 0'* ]] || { echo "there are no conformance tests"; return 1; }
  # shellcheck disable=SC2016 # for the guest's shell
  tests/guest/run.sh --device "$1" --timeout 1200 -- bash -c '
    status=0
    ctest --preset release -L conformance -j 1 --output-junit /tmp/report.xml || status=$?
    echo "@report"
    cat /tmp/report.xml
    exit $status' >"$said" || status=$?
  sed '/^@report/,$d' "$said"
  sed '1,/^@report/d' "$said" >"$report"
  return $status
}

## The parts, in the order in which they run

# The labels of what needs the guest's devices.
elsewhere='guest|conformance'

part_lint() {
  step "format" format
  step "scripts" scripts
}
part_dev() { preset dev -- -LE $elsewhere; }
part_tidy() { step "tidy" tidy; }
part_noexceptions() { preset noexceptions; }
part_clang() { preset clang static two_units -- -L 'static|compile_fail|consumer'; }
part_asan() { preset asan -- -LE $elsewhere; }
part_ubsan() { preset ubsan -- -LE $elsewhere; }
part_tsan() { preset tsan -- -LE $elsewhere; }
part_release() { preset release -- -LE $elsewhere; }
part_guest() {
  step "guest: build" build release conformance || return 0
  step "guest: run.sh" tests/guest/test_run.sh
  step "guest: conformance on rxe0" guest_conformance rxe
  step "guest: conformance on siw0" guest_conformance siw
  step "guest: examples" examples/run.sh --no-packages
}
parts=(lint dev tidy noexceptions clang asan release guest)
named_parts=(ubsan tsan)

chosen=() packages=yes
while (($#)); do
  case $1 in
    --help) usage; exit ;;
    --quick) chosen+=(lint dev) ;;
    --no-packages) packages=no ;;
    *)
      declare -F "part_$1" >/dev/null || {
        printf 'tests/run.sh: no part or option is called "%s"; there are: %s\n' "$1" "${parts[*]} ${named_parts[*]}" >&2
        exit 2
      }
      chosen+=("$1") ;;
  esac
  shift
done
((${#chosen[@]})) || chosen=("${parts[@]}")

if [[ $packages == yes ]] && ! .ci/packages.sh test; then
  failed=1
  summary
  exit 1
fi
for part in "${chosen[@]}"; do "part_$part"; done
summary
