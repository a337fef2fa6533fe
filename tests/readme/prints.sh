#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# prints.sh SOURCE PROGRAM: the program prints what the comments after its calls of std::puts say; "the same" is what the
# one before said.
set -eu
expected=$(sed -n 's|.*std::puts(.*);  *// *||p' "$1" | awk '$0 == "the same" { $0 = last } { print last = $0 }')
printed=$("$2")
if [[ -z $expected || $printed != "$expected" ]]; then
  printf 'expected:\n%s\nprinted:\n%s\n' "$expected" "$printed"
  exit 1
fi
