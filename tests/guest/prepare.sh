#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# shellcheck disable=SC2317 # the steps are called by name
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
store=$(cd "$here/../.." && pwd)/build/guest

# What the guest loads, in this order: rxe and siw look for crc32 and crc32c when they load, without asking for a module.
# Traffic to one's own address passes no queue, so losses by netem need two devices over a veth pair.
modules=(virtio_pci virtio_console 9p 9pnet_virtio overlay crc32_generic rdma_rxe crc32c_generic siw rdma_ucm)
modules+=(sch_netem veth)

usage() {
  cat <<'END'
Usage: tests/guest/prepare.sh

Makes the kernel and the initramfs that tests/guest/run.sh starts, unless they are there, and prints their folder:
build/guest/KERNEL-HASH of the repository. The hash is that of the scripts in this folder. The kernel is the newest
one in Debian's archive at that moment: remove build/guest to take a newer one.

Downloads about 230 MB with apt-get, installs nothing, needs 1 GB in build/guest while it works and 75 MB afterwards.
Debian's kernel comes without siw, which is therefore built from the kernel's source.

Exit status: 0 ready, 1 a step failed, 2 wrong usage, 77 this machine lacks something; a sentence says what.
END
}

say() { printf 'tests/guest: %s\n' "$*" >&2; }
unavailable() { say "$*"; exit 77; }

# need COMMAND PACKAGE...: names, in one sentence, the packages whose command is not here.
need() {
  local missing=()
  while (($#)); do
    command -v "$1" >/dev/null || missing+=("$2")
    shift 2
  done
  ((${#missing[@]} == 0)) || unavailable "this needs what is missing here: apt-get install ${missing[*]}"
}

# step TEXT COMMAND...: says what takes a while; `finish` shows the command's output if it fails.
step() {
  doing=$1
  say "$1"
  "${@:2}" >"$work/log" 2>&1
  doing=
}

finish() {
  local status=$?
  exec 2>&"$stderr" # a step's own goes to the log
  if [[ $doing ]]; then
    tail -n 20 "$work/log" >&2
    say "not done: $doing"
  fi
  rm -rf "$work"
  exit "$status"
}

depends() { apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: //p'; }

# Sets `kernel` (6.1.0-57-amd64) and leaves the packages in the current folder.
download() {
  kernel=$(depends linux-image-amd64 | sed -n 's/^linux-image-//p' || true)
  [[ $kernel =~ ^[0-9]+\.[0-9]+ ]] || return 1
  local packages=("linux-image-$kernel" "linux-headers-$kernel" "linux-source-${BASH_REMATCH[0]}" busybox-static)
  mapfile -t -O "${#packages[@]}" packages < <(depends "linux-headers-$kernel" | grep -E '^linux-(headers|kbuild)-')
  say "downloading Linux $kernel, its headers and its source"
  apt-get download "${packages[@]}" >"$work/log" 2>&1
}

update_lists() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo -n)
  say "updating apt's package lists"
  "${as_root[@]}" apt-get update >"$work/log" 2>&1 || true
}

unpack() {
  local package
  for package in linux-image-*.deb linux-headers-*.deb linux-kbuild-*.deb busybox-static_*.deb; do
    dpkg-deb -x "$package" root
  done
  dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO --wildcards './usr/src/*.tar.xz' |
    tar -xJ --wildcards --strip-components=4 --one-top-level=siw '*/drivers/infiniband/sw/siw'
}

build_siw() {
  # The headers expect to lie under /usr/src.
  sed -i "s|/usr/src|$PWD/root/usr/src|" "root/usr/src/linux-headers-$kernel/Makefile"
  env -i PATH="$PATH" make -j"$(nproc)" -C "root/usr/src/linux-headers-$kernel" M="$PWD/siw" CONFIG_RDMA_SIW=m modules
  mv siw/siw.ko "root/lib/modules/$kernel/kernel"
}

# Under emulation the kernel takes about two seconds to unpack itself, so this does it, once. The numbers are the
# boot protocol's setup_sects, payload_offset and payload_length; the payload ends with four bytes that are not xz's.
unpack_kernel() {
  local sectors offset length
  read -r sectors < <(od -An -tu1 -j $((0x1f1)) -N 1 "$1")
  read -r offset < <(od -An -tu4 -j $((0x248)) -N 4 "$1")
  read -r length < <(od -An -tu4 -j $((0x24c)) -N 4 "$1")
  dd if="$1" of=payload bs=1M iflag=skip_bytes,count_bytes \
    skip=$(((sectors + 1) * 512 + offset)) count=$((length - 4)) status=none
  if xz -t <payload; then xz -dc <payload; else cat "$1"; fi
}

pack() {
  local initramfs=$PWD/initramfs file
  mkdir -p "$initramfs"/{dev,proc,sys,host,writes,root}
  install "$here/init" root/bin/busybox "$initramfs"
  printf '%s\n' "${modules[*]}" >"$initramfs/modules"

  depmod -b root "$kernel"
  modprobe -d root -S "$kernel" --show-depends -a dummy "${modules[@]}" >depends
  while read -r _ file _; do
    install -D -m 644 "$file" "$initramfs/lib/modules/$kernel/${file##*/}"
    # This takes the signature off too, which would have to be checked at every start.
    strip --strip-debug "$initramfs/lib/modules/$kernel/${file##*/}"
  done < <(grep ^insmod depends | sort -u)
  depmod -b "$initramfs" "$kernel"

  mkdir ready
  (cd initramfs && find . | cpio -o -H newc --quiet) >ready/initramfs
  unpack_kernel "root/boot/vmlinuz-$kernel" >ready/kernel
}

case "$#:${1-}" in
  0:) ;;
  1:--help) usage; exit ;;
  *) say "prepare.sh takes no argument but --help"; exit 2 ;;
esac

PATH+=:/usr/sbin:/sbin
hash=$(cat "$here"/{prepare.sh,init} | sha256sum | cut -c -12)

ready() { compgen -G "$store/*-$hash"; }
needed=(qemu-system-x86_64 qemu-system-x86 rdma iproute2)
if ready >/dev/null; then
  need "${needed[@]}"
  ready
  exit
fi

{ grep -qx ID=debian /etc/os-release && [[ $(uname -m) == x86_64 ]]; } 2>/dev/null ||
  unavailable "the guest is made of Debian's packages for amd64, so it can be prepared on such a machine alone"
need "${needed[@]}" make make gcc gcc strip binutils xz xz-utils cpio cpio depmod kmod

mkdir -p "$store"
exec {lock}>"$store/lock"
flock -n "$lock" || {
  say "waiting for another prepare.sh"
  flock "$lock"
}
ready && exit

rm -rf "$store"/new.*
work=$(mktemp -d "$store/new.XXXXXX")
doing=
exec {stderr}>&2
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
cd "$work"

download || {
  update_lists
  download || unavailable "the guest's packages could not be downloaded: $(grep -m 1 '^[EW]:' "$work/log" || tail -n 1 "$work/log")"
}
step "unpacking" unpack
step "building the siw module" build_siw
step "packing the initramfs" pack

find "$store" -mindepth 1 -maxdepth 1 -type d ! -path "$work" -exec rm -rf {} +
mv ready "$store/$kernel-$hash"
ready
