#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# Checks that run.sh keeps what its --help says.
# shellcheck disable=SC2016 # most commands are for the guest's shell
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run ARGS...: run.sh with ARGS; sets `status`, leaves what came out in out and err of the work folder.
run() {
  status=0
  timeout 150 ./run.sh "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

# check TEXT COMMAND...: the command's success is the result.
check() {
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$1"
    printf '  status: %s\n' "$status"
    tail -n 5 "$work/out" "$work/err" | sed 's/^/  /'
  fi
}

ended() { ((status == $1)); }
out_is() { cmp -s "$work/out" - <<<"$1"; }
err_is() { cmp -s "$work/err" - <<<"$1"; }
out_has() { grep -qE -- "$1" "$work/out"; }
err_has() { grep -qE -- "$1" "$work/err"; }

./prepare.sh >/dev/null || exit

run --device roce -- true
check 'an unknown device is a usage error' ended 2
check 'which names the possible ones' err_has "rxe or siw, not 'roce'"
run --timeout soon -- true
check 'so is a time limit that is no number' ended 2
run --device rxe --
check 'so is a missing command' ended 2
run -- ./no-such-command
check 'a command that does not exist gives 127' ended 127
run -- ./init
check 'one that is not executable gives 126' ended 126
run --help
check 'help succeeds' ended 0
check 'and explains the options' out_has '--timeout SECONDS'

arguments=("two  spaces" "'single' \"double\"" $'new\nline' '' '$HOME \ *')
printf -v expected '<%s>\n' "${arguments[@]}"
export VERBENA_DEVICE='mine alone'
run -- bash -c 'printf "<%s>\n" "$@"; echo "$VERBENA_DEVICE $PWD" >&2; exit 3' _ "${arguments[@]}"
check 'the exit status arrives' ended 3
check 'arguments arrive intact, stdout comes out alone' out_is "${expected%$'\n'}"
check 'so does stderr; environment and working directory are the caller'\''s' err_is "mine alone $PWD"

run --device siw -- bash -c 'echo "$VERBENA_DEVICE $VERBENA_ADDRESS"; head -c 300000 /dev/zero; kill -SEGV $$'
check 'a signal gives 128 + n' ended $((128 + 11))
check '--device siw sets the variables' out_has '^siw0 198\.51\.100\.1$'
check 'no byte gets lost' test "$(stat -c %s "$work/out")" = 300018

run --timeout 5 -- sh -c 'echo before; sleep 30 & sleep 30'
check 'a reached time limit gives 124' ended 124
check 'after what the command printed' out_is before
check 'and stderr says so' err_has 'time limit of 5 s'

cat >"$work/devices" <<'END'
echo "$VERBENA_DEVICE $VERBENA_ADDRESS"
rdma link
rdma resource show
ibv_devinfo
touch "$PWD/written" /tmp/written /dev/shm/written && echo writable
lsmod | grep -E '^(iw_cm|rdma_cm|rdma_ucm|ib_uverbs|sch_netem|dummy|veth) '
command -v rping >/dev/null || exit 0
for address in 192.0.2.1 198.51.100.1 2001:db8:1::1 2001:db8:2::1 fe80::ff:fe00:1%eth0; do
  timeout 15 rping -s -a "$address" -C 3 &
  until rdma resource show cm_id | grep -q LISTEN || ! kill -0 $!; do sleep 0.1; done
  timeout 15 rping -c -a "$address" -C 3 && wait $! && echo "rping over $address"
done
END
run --device rxe --timeout 90 -- bash "$work/devices"
check 'the command on the devices succeeds' ended 0
check '--device rxe sets the variables' out_has '^rxe0 192\.0\.2\.1$'
for device in rxe0 siw0; do
  check "rdma link shows $device" out_has "link $device/1 state ACTIVE"
  check "rdma resource shows $device" out_has "^[01]: $device: pd"
  check "ibv_devinfo sees $device" out_has "hca_id:[[:space:]]$device"
done
for module in dummy ib_uverbs iw_cm rdma_cm rdma_ucm sch_netem veth; do
  check "$module is loaded" out_has "^$module "
done
check 'the files are writable' out_has '^writable$'
check 'and not on the host' test ! -e written
if command -v rping >/dev/null; then
  for address in 192.0.2.1 198.51.100.1 2001:db8:1::1 2001:db8:2::1 fe80::ff:fe00:1%eth0; do
    check "rping runs over $address" out_has "^rping over $address$"
  done
else
  echo 'skipped: rping, of the package rdmacm-utils, is not here'
fi

mkdir "$work/temporary"
TMPDIR=$work/temporary ./run.sh -- sleep 60 2>"$work/err" &
runner=$!
until vm=$(pgrep -P $runner qemu) || ! kill -0 $runner; do sleep 0.1; done
kill $runner
status=0
wait $runner || status=$?
check 'SIGTERM ends it' ended 143
check 'and its virtual machine' test ! -e "/proc/$vm"
check 'and leaves no files' test -z "$(ls -A "$work/temporary")"

echo "$passed passed, $failed failed"
((failed == 0))
