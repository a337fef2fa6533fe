#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() {
  cat <<'END_OF_USAGE'
Usage: examples/run.sh [--device DEVICE]... [--no-packages] [EXAMPLE...]

Builds the examples and runs all of them, or those named, between two programs: with each setup and each way of
completion, on each device. Installs on Debian 12 what is missing. One line for each run, with the latency.

  --device DEVICE  soft: the software device of the library;
                   rxe, siw: the kernel's software devices, in a virtual machine;
                   any other name: that RDMA device of this machine, at the address in VERBENA_ADDRESS, or else at the
                   first IPv4 address of its network interface.
                   If none is given: soft, rxe and siw
  --no-packages    install nothing

Exit status: 0 none failed, 1 something failed, 2 wrong usage.
END_OF_USAGE
}

# Seconds: for each wait of an example, and for a whole program.
patience=20 limit=60

## Here or in the guest

# address_of DEVICE
address_of() {
  local interface
  if [[ -n ${VERBENA_ADDRESS-} ]]; then
    echo "$VERBENA_ADDRESS"
    return
  fi
  interface=$(rdma link show "$1/1" 2>/dev/null | sed -n 's/.* netdev \([^ ]*\).*/\1/p')
  [[ -z $interface ]] || ip -4 -o address show dev "$interface" | sed -nE '1s/.* inet ([0-9.]+).*/\1/p'
}

# hear DESCRIPTOR PROCESS: waits until a program ends. Sets said to what it says until then, and status to how it ended.
hear() {
  local stream=$1
  status=0
  IFS= read -r -d '' -t "$limit" -u "$stream" said || status=$?
  if ((status > 128)); then
    said+="did not end within $limit s; where it was: $(cat "/proc/$2/"{wchan,stack} 2>/dev/null)"
    kill -KILL "$2"
  fi
  status=0
  wait "$2" || status=$?
  exec {stream}<&-
}

# pair EXAMPLE DEVICE ADDRESS SETUP COMPLETION ITERATIONS: runs the two roles, then prints a line
# "@ EXAMPLE DEVICE SETUP COMPLETION STATUS TEXT". What went wrong comes before it.
pair() {
  local command=("build/examples/bin/$1" --device "$2" --setup "$4" --completion "$5" --iterations "$6"
    --timeout "$patience")
  local first='' said='' text='' status=0 connected=0 did='' listening listener connecting
  exec {listening}< <(exec "${command[@]}" --listen "$3" 2>&1)
  listener=$!
  IFS= read -r -t "$limit" -u "$listening" first
  if [[ $first == 'listening on '* ]]; then
    exec {connecting}< <(exec "${command[@]}" --connect "$3" 2>&1)
    hear "$connecting" $!
    connected=$status did=$said
  fi
  hear "$listening" "$listener"
  if ((connected == 0 && status == 0)) && [[ $did =~ [0-9.]+\ us ]]; then
    text=${BASH_REMATCH[0]}
  elif ((connected == 0 && status == 77)); then
    text=${first#"$1: "}
  else
    printf '%s\n' "listening role, status $status:" "$first" "$said" "connecting role, status $connected:" "$did"
    status=1 text='what they said stands below'
  fi
  printf '@ %s %s %s %s %d %s\n' "$1" "$2" "$4" "$5" "$status" "$text"
}

# pairs ITERATIONS DEVICE... -- EXAMPLE...
pairs() {
  local devices=() device address example setup completion iterations=$1
  shift
  while [[ $1 != -- ]]; do devices+=("$1"); shift; done
  shift
  for device in "${devices[@]}"; do
    address=$(address_of "$device")
    for example in "$@"; do
      for setup in descriptor cm; do
        for completion in busy_poll event_driven; do
          pair "$example" "$device" "${address:-127.0.0.1}" "$setup" "$completion" "$iterations"
        done
      done
    done
  done
}

if [[ ${1-} == --pairs ]]; then
  pairs "${@:2}"
  exit
fi

## The script proper

. .ci/steps.sh

build() {
  cmake --preset examples && cmake --build --preset examples --parallel
}

# tell: the results among the lines it reads, in words, and what was said about the failed ones. Counts them, in seen too.
tell() {
  local line example device setup completion status text verdict
  seen=0 details=''
  while IFS= read -r line; do
    if [[ $line != '@ '* ]]; then
      details+=${line:+    $line$'\n'}
      continue
    fi
    read -r _ example device setup completion status text <<<"$line"
    seen=$((seen + 1))
    case $status in
      0) verdict=ok passed=$((passed + 1)) details='' ;;
      77) verdict=skipped skipped=$((skipped + 1)) details='' ;;
      *) verdict=failed failed=$((failed + 1)) ;;
    esac
    printf '%-20s %-5s %-11s %-13s %-8s %s\n%s' "$example" "$device" "$setup" "$completion" "$verdict" "$text" "$details"
    details=''
  done
}

# finish WHERE EXPECTED STATUS: what to say if the pairs came to an early end with this status.
finish() {
  local missing=$(($2 - seen))
  ((missing != 0)) || return 0
  if (($3 == 77)); then
    skip "$missing runs $1" "$(tail -n 1 <<<"${details%$'\n'}" | sed 's/^ *//')"
  else
    failed=$((failed + missing))
    printf '%d runs %s did not take place:\n%s\n' "$missing" "$1" "$(tail -n 15 <<<"${details%$'\n'}")"
  fi
}

all_examples() {
  local each names=()
  for each in examples/*.cpp; do names+=("$(basename "$each" .cpp)"); done
  echo "${names[*]}"
}

guest=() here=() examples=() packages=yes
while (($#)); do
  case $1 in
    --help) usage; exit ;;
    --device)
      case ${2-} in
        '') echo 'examples/run.sh: --device needs the name of a device' >&2; exit 2 ;;
        rxe | siw) guest+=("${2}0") ;;
        *) here+=("$2") ;;
      esac
      shift ;;
    --no-packages) packages=no ;;
    *)
      [[ $1 != */* && -e examples/$1.cpp ]] || {
        printf 'examples/run.sh: no example or option is called "%s"; there are: %s\n' "$1" "$(all_examples)" >&2
        exit 2
      }
      examples+=("$1") ;;
  esac
  shift
done
((${#guest[@]} + ${#here[@]})) || here=(soft) guest=(rxe0 siw0)
((${#examples[@]})) || read -r -a examples <<<"$(all_examples)"

if [[ $packages == yes ]]; then .ci/packages.sh build || exit 1; fi
if step "build" build; then
  shopt -s lastpipe # tell counts in this shell
  runs=$((4 * ${#examples[@]}))
  if ((${#here[@]})); then
    pairs 100 "${here[@]}" -- "${examples[@]}" 2>&1 </dev/null | tee $logs/examples.log | tell
    finish "on this machine" $((runs * ${#here[@]})) "${PIPESTATUS[0]}"
  fi
  if ((${#guest[@]})); then
    echo "In a virtual machine (its start takes a while, and its processor is an emulated one):"
    tests/guest/run.sh --timeout 600 -- examples/run.sh --pairs 20 "${guest[@]}" -- "${examples[@]}" 2>&1 </dev/null |
      tee $logs/examples-guest.log | tell
    finish "in the virtual machine" $((runs * ${#guest[@]})) "${PIPESTATUS[0]}"
  fi
fi
summary
