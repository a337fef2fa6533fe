#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# shellcheck disable=SC2317 # finish is called by a trap
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'END'
Usage: tests/guest/run.sh [--device rxe|siw] [--timeout SECONDS] [--help] -- COMMAND ARGS...

Runs COMMAND as root in a virtual machine whose kernel has two software RDMA devices:

  rxe0  RoCE v2, on eth0: 192.0.2.1, 2001:db8:1::1, fe80::ff:fe00:1
  siw0  iWARP, on dum0: 198.51.100.1, 2001:db8:2::1, fe80::ff:fe00:2

  --device rxe|siw   sets VERBENA_DEVICE (rxe0 or siw0) and VERBENA_ADDRESS (its IPv4 address) for COMMAND
  --timeout SECONDS  ends COMMAND that long after its start; 120 if not given

COMMAND sees the files of this machine, this working directory and this environment. What it writes to files is lost
at the end, and what it left running ends with it. Its stdin is /dev/null; its stdout and stderr come out of run.sh byte
for byte. No network leaves the guest, which is emulated on every machine: several times slower, but the same.
The first run prepares the guest under build/guest (see tests/guest/prepare.sh --help).

Exit status: that of COMMAND (128 + n if signal n ended it), or
    2  wrong usage
   77  this machine lacks something; a sentence says what
  124  COMMAND reached its time limit
  125  the guest did not start, or broke down
  126  COMMAND is not executable
  127  COMMAND does not exist
END
}

say() { printf 'tests/guest: %s\n' "$*" >&2; }
stop() { say "$2"; exit "$1"; }
wrong() { stop 2 "$1 (see tests/guest/run.sh --help)"; }

declare -A addresses=([rxe]=192.0.2.1 [siw]=198.51.100.1) # of those reserved for documentation
device='' limit=120
while (($#)); do
  case $1 in
    --help) usage; exit ;;
    --device)
      device=${2-}
      [[ $device == rxe || $device == siw ]] || wrong "--device is rxe or siw, not '$device'"
      shift 2 ;;
    --timeout)
      limit=${2-}
      [[ $limit =~ ^[1-9][0-9]{0,5}$ ]] || wrong "--timeout is a whole number of seconds from 1 on, not '$limit'"
      shift 2 ;;
    --) shift; break ;;
    *) wrong "expected --device, --timeout, --help or --, not '$1'" ;;
  esac
done
(($#)) || wrong "no command: what to run stands after --"

program=$(type -P -- "$1") || program=$1
[[ $program == */* && -e $program ]] || stop 127 "no such command: $1"
[[ -f $program && -x $program ]] || stop 126 "not an executable file: $1"

guest=$("$here/prepare.sh") || {
  status=$?
  ((status == 77)) || status=125
  exit "$status"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/verbena-guest.XXXXXX")
vm=''
end_vm() {
  [[ $vm ]] || return 0
  kill -KILL "$vm" 2>/dev/null || true
  wait "$vm" || true
  vm=''
}
finish() {
  end_vm
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# The job, as a script for any shell: env takes what is no shell's variable too.
quote() { printf " '%s'" "${1//\'/\'\\\'\'}"; }
[[ ! $device ]] || export VERBENA_DEVICE=${device}0 VERBENA_ADDRESS=${addresses[$device]}
mkdir "$work/job"
{
  printf 'cd%s && exec env -i' "$(quote "$PWD")"
  while IFS= read -r -d '' setting; do quote "$setting"; done < <(env -0)
  quote "$program"
  for argument in "${@:2}"; do quote "$argument"; done
} >"$work/job/job"

share() { echo "local,path=${2//,/,,},mount_tag=$1,security_model=none,readonly=on,multidevs=remap"; }

# Through cat, because qemu makes what it writes to non-blocking, for everybody who shares it.
exec {out}> >(exec cat) && relays=($!)
exec {err}> >(exec cat >&2 {out}>&-) && relays+=($!)

# The last three go to the guest's init.
kernel_options=(
  console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init cryptomgr.notests mitigations=off nokaslr
  "limit=$limit" "rxe=${addresses[rxe]}" "siw=${addresses[siw]}"
)

# qemu must not outlive this script, whatever ends it: hence setpriv. A panic ends qemu (panic=-1 with -no-reboot).
exec {reports}< <(
  exec setpriv --pdeathsig KILL qemu-system-x86_64 \
    -M q35 -cpu max -smp 2 -m 2G -nodefaults -no-user-config -no-reboot -display none \
    -kernel "$guest/kernel" -initrd "$guest/initramfs" \
    -append "${kernel_options[*]}" \
    -chardev file,id=console,path=/dev/fd/2,append=on -serial chardev:console \
    -virtfs "$(share host /)" -virtfs "$(share job "$work/job")" \
    -device virtio-serial-pci \
    -chardev "file,id=out,path=/dev/fd/$out" -device virtserialport,chardev=out,nr=1 \
    -chardev "file,id=err,path=/dev/fd/$err" -device virtserialport,chardev=err,nr=2 \
    -chardev file,id=reports,path=/dev/fd/1 -device virtserialport,chardev=reports,nr=3 \
    </dev/null 2>>"$work/log"
)
vm=$!
exec {out}>&- {err}>&-

# await SECONDS: the guest's next report, `gone` if there will be none, `silent` if none comes in time.
await() {
  local status=0
  IFS= read -r -t "$1" -u "$reports" report || status=$?
  if ((status > 128)); then report=silent; elif ((status)); then report=gone; fi
}

broken() {
  end_vm
  wait "${relays[@]}" || true
  tail -n 15 "$work/log" >&2
  stop 125 "$1; above are its last messages"
}

await 300 # 4 s on a quiet machine; it is emulated, and others may want the processors
case $report in
  started) ;;
  silent) broken "the guest did not start within 300 s (load of this machine: $(cut -d' ' -f1-3 /proc/loadavg))" ;;
  *) broken "the guest did not start ($report)" ;;
esac
await $((limit + 15))
case $report in
  exit\ *) status=${report#exit } ;;
  timeout) status=124 ended="time limit of $limit s reached, ended: $1" ;;
  silent) status=124 ended="time limit of $limit s reached, and the guest answers no more: $1" ;;
  *) broken "the guest broke down while the command ran" ;;
esac

await 5 # for the guest to power off
end_vm
wait "${relays[@]}" || true
[[ ! ${ended-} ]] || say "$ended"
exit "$status"
