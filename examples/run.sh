#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
  cat <<'END'
Usage: examples/run.sh [--device DEVICE]... [--no-packages] [EXAMPLE...]

Builds the examples and runs all of them, or those named, on each device; installs on Debian 12 what is missing.
One line for each: what the program said last. Logs in build/logs.

  --device DEVICE  rxe or siw: the kernel's software devices, in a virtual machine (both, if none is given);
                   soft: the software device of the library, here
  --no-packages    install nothing

Exit status: 0 none failed, 1 something failed, 2 wrong usage.
END
}

program() { echo "build/release/bin/$1"; }

# Runs the examples on the device that VERBENA_DEVICE names, here or in the guest: the output of each, then a line
# "@example NAME STATUS".
run_here() {
  local name status
  for name in "$@"; do
    status=0
    timeout 60 "$(program "$name")" 2>&1 || status=$?
    printf '\n@example %s %d\n' "$name" "$status"
  done
}

if [[ ${1-} == --run-here ]]; then
  run_here "${@:2}"
  exit
fi

. .ci/steps.sh

build() {
  cmake --preset release && cmake --build --preset release --parallel --target examples
}

# run_on DEVICE EXAMPLE...: tells the result of each as it comes.
run_on() {
  local device=$1 log=$logs/examples-$1.log said='' seen=0 line name status
  shift
  local command=(tests/guest/run.sh --device "$device" --timeout 600 -- examples/run.sh --run-here "$@")
  if [[ $device == soft ]]; then
    command=(env VERBENA_DEVICE=soft examples/run.sh --run-here "$@")
  else
    echo "On $device, in a virtual machine (its start takes a while):"
  fi
  "${command[@]}" 2>&1 </dev/null |
    tee "$log" |
    while IFS= read -r line; do
      if [[ $line == '@example '* ]]; then
        read -r _ name status <<<"$line"
        result "$name on $device" "$status" "$said"
        seen=$((seen + 1)) said=''
      elif [[ -n $line ]]; then
        said+=${said:+$'\n'}$line
      fi
    done
  status=${PIPESTATUS[0]}
  # Fewer than asked for: the guest ended early, and the last words are its own.
  if ((seen < $#)); then
    ((status != 0)) || status=1
    result "$(($# - seen)) examples on $device" "$status" "$said"
  fi
}

devices=() examples=() packages=yes
while (($#)); do
  case $1 in
    --help) usage; exit ;;
    --device)
      [[ ${2-} == @(soft|rxe|siw) ]] || { usage >&2; exit 2; }
      devices+=("$2")
      shift ;;
    --no-packages) packages=no ;;
    *)
      [[ -e examples/$1.cpp ]] || { usage >&2; exit 2; }
      examples+=("$1") ;;
  esac
  shift
done
((${#devices[@]})) || devices=(rxe siw)
if ((${#examples[@]} == 0)); then
  for source in examples/*.cpp; do
    name=${source##*/}
    [[ ! -e $source ]] || examples+=("${name%.cpp}")
  done
fi
((${#examples[@]})) || { echo "There are no examples."; exit 1; }

if [[ $packages == yes ]]; then .ci/packages.sh build || exit 1; fi
if step "build" build; then
  shopt -s lastpipe
  for device in "${devices[@]}"; do run_on "$device" "${examples[@]}"; done
fi
summary
