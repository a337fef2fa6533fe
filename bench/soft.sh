#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END_OF_USAGE'
Usage: bench/soft.sh [--repetitions N] [--no-packages]

Measures the software device between two processes, pinned to the first two cores, beside UCX and libfabric over
shared memory, a bare cache line that goes to and fro, and memcpy. All take turns, N times (11 if not given). Prints
the medians, and each ratio as the median of those of the repetitions, with the least and the largest. Installs on
Debian 12 what is missing.

  --no-packages  install nothing

Exit status: 0 everything ran (whatever the ratios are), 1 something could not run, 2 wrong usage.
END_OF_USAGE
}

repetitions=11 packages=yes
while (($#)); do
  case $1 in
    --help) usage; exit ;;
    --no-packages) packages=no ;;
    --repetitions)
      [[ ${2-} =~ ^[1-9][0-9]{0,3}$ ]] || { usage >&2; exit 2; }
      repetitions=$2
      shift ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

stop() { printf 'bench/soft.sh: %s\n' "$*" >&2; exit 1; }

if [[ $packages == yes ]]; then .ci/packages.sh bench || exit 1; fi
mkdir -p build/logs
{ cmake --preset release -B build/bench -DVERBENA_BUILD_TESTS=OFF -DVERBENA_BUILD_EXAMPLES=OFF &&
  cmake --build build/bench --target bench_soft; } >build/logs/bench-soft.log 2>&1 ||
  stop "the program does not build, see build/logs/bench-soft.log"
mapfile -t cores < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
  while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done | head -n 2)
((${#cores[@]} == 2)) || stop "two cores are needed"

samples=$(mktemp -d)
trap 'rm -rf "$samples"' EXIT

# beside SECOND... -- FIRST...: runs two programs, one on each core, the second when the first has had a moment to
# listen. Prints what the second says.
beside() {
  local second=() first listening status=0
  while [[ $1 != -- ]]; do second+=("$1"); shift; done
  shift
  first=("$@")
  timeout 60 taskset -c "${cores[0]}" "${first[@]}" >"$samples/first.log" 2>&1 </dev/null &
  listening=$!
  sleep 0.5
  timeout 60 taskset -c "${cores[1]}" "${second[@]}" 2>"$samples/second.log" </dev/null || status=$?
  ((status == 0)) || kill "$listening" 2>/dev/null || true
  wait "$listening" 2>/dev/null || ((status != 0)) || status=$?
  return $status
}

# The median half round trip of 8 bytes, in nanoseconds.
ucx() {
  local port=$((20000 + RANDOM % 10000))
  UCX_TLS=posix,self UCX_LOG_LEVEL=error beside ucx_perftest 127.0.0.1 -p $port -t tag_lat -s 8 -n 100000 -w 1000 -f \
    -- ucx_perftest -p $port | awk '$1 == 100000 { print $2 * 1000 }'
}
# It tells the mean only, disturbances included.
libfabric() {
  beside fi_pingpong -p shm -e rdm -I 10000 -S 8 127.0.0.1 -- fi_pingpong -p shm -e rdm -I 10000 -S 8 |
    awk '$1 == 8 { print $(NF - 1) * 1000 }'
}

# keep NAME VALUE
keep() {
  [[ $2 =~ ^[0-9.]+$ ]] || stop "$1 gave no number: ${2:-nothing}; $(tail -n 3 "$samples"/*.log)"
  echo "$2" >>"$samples/$1"
}
for ((i = 0; i < repetitions; ++i)); do
  measured=$(timeout 120 build/bench/bin/bench_soft) || stop "bench_soft failed"
  while read -r name value; do keep "$name" "$value"; done <<<"$measured"
  keep ucx "$(ucx)"
  keep libfabric "$(libfabric)"
done

# spread: of the numbers it reads, the median, the least and the largest.
spread() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)], all[1], all[NR] }'; }

echo "Nanoseconds, medians of $repetitions repetitions (least to largest):"
while read -r name text; do
  read -r middle least largest < <(spread <"$samples/$name")
  printf '  %-55s %10.1f (%.1f to %.1f)\n' "$text" "$middle" "$least" "$largest"
done <<'END_OF_LIST'
bare a bare cache line, half a round trip
write 8-byte write seen by polling memory, half a round trip
send 8-byte send/receive, half a round trip
ucx UCX tag_lat over posix shared memory
libfabric libfabric fi_pingpong -p shm (mean)
memcpy memcpy of 1 MiB
write_bulk 1 MiB write, to its completion
END_OF_LIST

# ratio OVER UNDER BOUND LIMIT TEXT: BOUND is <= or >=, or - for a ratio without a target.
ratio() {
  local middle least largest verdict=''
  read -r middle least largest < <(paste "$samples/$1" "$samples/$2" | awk '{ print $1 / $2 }' | spread)
  if [[ $3 != - ]]; then
    verdict=", target $3 $4: $(awk -v is="$middle" -v bound="$4" -v how="$3" \
      'BEGIN { print ((how == "<=" ? is <= bound : is >= bound) ? "holds" : "missed") }')"
  fi
  printf '%s: %.3f (%.3f to %.3f)%s\n' "$5" "$middle" "$least" "$largest" "$verdict"
}
echo "Ratios:"
ratio send ucx '<=' 0.5 "8-byte send/receive, to UCX tag_lat"
ratio send libfabric - '' "8-byte send/receive, to libfabric fi_pingpong"
ratio send bare - '' "8-byte send/receive, to a bare cache line"
ratio write bare '<=' 1.5 "8-byte write seen by polling memory, to a bare cache line"
ratio memcpy write_bulk '>=' 0.95 "1 MiB write, speed to memcpy's"
