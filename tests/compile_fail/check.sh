#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# check.sh COMPILER FLAGS FILE
#
# FLAGS is a file of flags that the compiler reads. FILE says on one line
#     // expect: sentence
# and passes when it does not compile, the compiler gives the sentence in an error or a note within
# the first 15 lines it prints, and the same file compiles with -DFIXED.
set -u
readonly limit=15

fail() {
    echo "$file: $1"
    [ -z "${2-}" ] || printf '%s\n' "$2" | head -n 40
    exit 1
}

command=("$1" "@$2" -fsyntax-only)
file=$3

mapfile -t sentences < <(sed -n 's|^ *// expect: *||p' "$file")
[ ${#sentences[@]} -eq 1 ] || fail "has ${#sentences[@]} lines '// expect: sentence', not one"
sentence=${sentences[0]}
[ -n "$sentence" ] || fail "expects an empty sentence, which any output would satisfy"

if output=$("${command[@]}" "$file" 2>&1); then
    fail "compiles, but should not"
fi

# Only diagnostics count: compilers also echo the source, where the sentence stands anyway.
line=$(grep -nE '(error|note): ' <<<"$output" | grep -F -m 1 -- "$sentence" | cut -d: -f1)
[ -n "$line" ] || fail "does not compile, but the compiler does not say '$sentence':" "$output"
[ "$line" -le $limit ] ||
    fail "the sentence comes on line $line of the output, later than line $limit:" "$output"

if ! output=$("${command[@]}" -DFIXED "$file" 2>&1); then
    fail "does not compile with -DFIXED either:" "$output"
fi
