#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# refused.sh README TEST: the README's second C++ block and the sentence after it are those of a compile-fail test.
set -eu
block=$(dirname "$0")/block.sh
code=$("$block" "$1" cpp 2)
said=$("$block" "$1" text 1)
sentence=$(sed -n 's|^// expect: ||p' "$2")
if [[ "$(sed 's/^  //' "$2")" != *"$code"* ]]; then
  printf '%s does not hold this block of %s:\n%s\n' "$2" "$1" "$code"
  exit 1
fi
if [[ $said != "error: static assertion failed: $sentence" ]]; then
  printf '%s expects:\n%s\n%s says:\n%s\n' "$2" "$sentence" "$1" "$said"
  exit 1
fi
