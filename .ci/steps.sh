# shellcheck shell=bash
# SPDX-License-Identifier: BSL-1.0
#
# Sourced by tests/run.sh and examples/run.sh, in the repository's top folder: runs steps, each with one line of
# output and a log, and counts what passed.
#
#   step NAME COMMAND ARGS...   runs it; status 77 is "skipped", the last line of its output being the reason
#   skip NAME REASON
#   result NAME STATUS OUTPUT   the line of something that ran elsewhere and printed OUTPUT
#   summary                     the last line; its status is the script's
#
# A command that runs tests of its own leaves their JUnit report in $report, and they are counted one by one instead.

logs=build/logs
passed=0 failed=0 skipped=0
mkdir -p $logs

job=''
interrupted() {
  [[ -z $job ]] || kill -TERM -- "-$job" 2>/dev/null || true
  echo
  exit 130
}
trap interrupted INT TERM

skip() {
  skipped=$((skipped + 1))
  printf '%s … skipped: %s\n' "$1" "$2"
}

result() {
  local last=${3##*$'\n'}
  if (($2 == 0)); then
    passed=$((passed + 1))
    printf '%s … ok: %s\n' "$1" "$last"
  elif (($2 == 77)); then
    skip "$1" "$last"
  else
    failed=$((failed + 1))
    printf '%s … failed (status %d):\n' "$1" "$2"
    tail -n 30 <<<"$3" | sed 's/^/    /'
  fi
}

# progress NAME LOG: on a terminal, how long it has taken and what the build tool counts.
progress() {
  local start=$SECONDS
  while sleep 1; do
    printf '\r\e[K%s … %d s %s' "$1" $((SECONDS - start)) \
      "$(tail -n 1 "$2" | grep -oE '^ *\[?[0-9]+/[0-9]+\]?' || true)"
  done
}

attribute() { sed -nE "/<testsuite/,/>/s/.*[[:space:]]$2=\"([0-9]+)\".*/\1/p" "$1" | head -n 1; }

# Counts the tests of a report, names those that did not run, and says "N tests".
count() {
  local total bad not_run
  total=$(attribute "$1" tests) bad=$(attribute "$1" failures)
  not_run=$(($(attribute "$1" skipped) + $(attribute "$1" disabled)))
  passed=$((passed + total - bad - not_run)) failed=$((failed + bad)) skipped=$((skipped + not_run))
  counted=$bad
  tests="$total tests, "
  ((total != 1)) || tests='1 test, '
  ((not_run == 0)) || tests+="$not_run of them skipped, "
}

step() {
  local name=$1 start=$SECONDS status=0 ticker='' slug log tests='' counted=0
  shift
  slug=${name//[^A-Za-z0-9_.-]/-}
  log=$logs/$slug.log
  report=$PWD/$logs/$slug.xml
  rm -f "$report"
  printf '%s … ' "$name"

  # A process group of its own, so that an interrupt ends all of it.
  set -m
  (set -euo pipefail; "$@") >"$log" 2>&1 </dev/null &
  job=$!
  set +m
  if [[ -t 1 ]]; then
    progress "$name" "$log" &
    ticker=$!
  fi
  wait $job || status=$?
  job=''
  if [[ -n $ticker ]]; then
    kill $ticker 2>/dev/null || true
    wait $ticker 2>/dev/null || true
    printf '\r\e[K%s … ' "$name"
  fi

  [[ ! -s $report ]] || count "$report"
  if ((status == 0)); then
    [[ -n $tests ]] || passed=$((passed + 1))
    printf 'ok (%s%d s)\n' "$tests" $((SECONDS - start))
    [[ ! -s $report ]] || not_run "$report"
  elif ((status == 77)); then
    skipped=$((skipped + 1))
    printf 'skipped: %s\n' "$(tail -n 1 "$log")"
    status=0
  else
    ((counted > 0)) || failed=$((failed + 1))
    printf 'failed (%s%d s), from %s:\n' "$tests" $((SECONDS - start)) "$log"
    { grep -m 5 'error:' "$log"; echo ...; tail -n 20 "$log"; } | sed 's/^/    /'
  fi
  return $status
}

# Names the tests of a report that were skipped.
not_run() {
  sed -nE '/status="(notrun|disabled)"/s/.*<testcase name="([^"]*)".*/    skipped: \1/p' "$1" |
    sed "s/&apos;/'/g; s/&quot;/\"/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g"
}

summary() {
  local line="$passed passed, $failed failed"
  ((skipped == 0)) || line+=", $skipped skipped"
  printf '%s\n' "$line"
  ((failed == 0 && passed + skipped > 0))
}
