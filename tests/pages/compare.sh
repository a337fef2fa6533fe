#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# compare.sh PROGRAM PAGE: whether PAGE is what PROGRAM prints.
set -u
if ! printed=$("$1"); then
  echo "$1 failed"
  exit 1
fi
diff --label "$2" --label "${1##*/}" -u "$2" - <<<"$printed" && exit
echo "If the program is right: $1 >$2"
exit 1
