#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# block.sh FILE LANGUAGE NUMBER: prints the NUMBER-th code block of this language in a Markdown file, byte for byte.
set -eu
awk -v fence="\`\`\`$2" -v number="$3" '
  inside && /^```$/ { exit }
  inside
  $0 == fence && ++seen == number { inside = found = 1 }
  END { exit !found }
' "$1"
