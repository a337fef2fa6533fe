#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# links.sh README: what it links to exists, and so do the scripts it tells to run.
set -eu
cd "$(dirname "$1")"
wrong=0
while IFS= read -r target; do
  [[ -e ${target%%#*} ]] || { echo "README.md names $target, which does not exist"; wrong=1; }
done < <(grep -oE '\]\([^):]+\)|^    \./[^ ]+' README.md | sed -E 's/^\]\(|\)$|^ +//g')
exit $wrong
