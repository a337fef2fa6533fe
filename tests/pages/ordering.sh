#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# ordering.sh PAGE SOURCE: whether each row of PAGE's table names a test of SOURCE, and each of those has a row.
set -u
diff --label "$1" --label "$2" -u \
  <(sed -nE 's/^\|.*\| ([^|]+) \|$/\1/p' "$1" | grep -vxE 'test|-+' | sort) \
  <(tr '\n' ' ' <"$2" | grep -oE 'TEST_CASE\("ordering: [^"]+"' | sed -E 's/.*"ordering: (.*)"/\1/' | sort)
