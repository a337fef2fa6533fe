#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# policies.sh README POLICIES: the README's table of policies has each axis and policy of that folder and no other, with the
# default first.
set -eu
said=$(sed -nE 's/^\| \[([a-z_]+)\]\(docs\/policies\/\1\.md\) \| ([^|]+) \|.*/\1 \2/p' "$1" | tr -d '\140')
wrong=0
complain() { echo "$*"; wrong=1; }

while read -r axis policies; do
  [[ -d $2/$axis ]] || complain "the table has an axis $axis, include/verbena/policy has not"
  for policy in $policies; do
    [[ -e $2/$axis/$policy.hpp ]] || complain "the table has a policy $axis::$policy, include/verbena/policy has not"
  done
  [[ "$(<"$2/axes.hpp")" == *"using fallback = verbena::$axis::${policies%% *};"* ]] ||
    complain "the table says that ${policies%% *} is the default of $axis, axes.hpp does not"
done <<<"$said"

for header in "$2"/*/*.hpp; do
  policy=${header##*/} policy=${policy%.hpp}
  axis=${header%/*} axis=${axis##*/}
  grep -q "^struct $policy {" "$header" || continue
  grep -qE "^$axis( .*)? $policy( |$)" <<<"$said" || complain "the table of policies lacks $axis::$policy"
done
exit $wrong
