#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# check_check.sh CHECK COMPILER FLAGS: does check.sh tell a good file from each kind of bad one?
set -u
check=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong=0

# try pass|fail REASON NAME < source: REASON is what check.sh must say.
try() {
    cat > "$folder/$3.cpp"
    local said result=pass
    said=$("${check[@]}" "$folder/$3.cpp" 2>&1) || result=fail
    if [ $result != "$1" ] || [[ $said != *"$2"* ]]; then
        printf '%s: expected %s (%s), got %s:\n%s\n' "$3" "$1" "$2" $result "$said"
        wrong=1
    fi
}

try pass "" good <<'EOF'
// expect: seven is no answer
#ifdef FIXED
constexpr int answer = 42;
#else
constexpr int answer = 7;
#endif
static_assert(answer != 7, "seven is no answer");
EOF
try pass "" with_the_library <<'EOF'
// expect: seven is no answer
#include <verbena/verbena.hpp>
#ifndef FIXED
static_assert(VERBENA_VERSION_MAJOR < 0, "seven is no answer");
#endif
EOF
try pass "" in_a_function_template <<'EOF'
// expect: seven is no answer
template <int answer> void give() {
    static_assert(answer != 7, "seven is no answer");
}
#ifdef FIXED
int main() { give<42>(); }
#else
int main() { give<7>(); }
#endif
EOF
try fail "compiles, but should not" compiles <<'EOF'
// expect: seven is no answer
static_assert(true, "seven is no answer");
EOF
try fail "does not say 'eight is no answer'" another_sentence <<'EOF'
// expect: eight is no answer
#ifndef FIXED
static_assert(false, "seven is no answer");
#endif
EOF
try fail "does not say 'seven is no answer'" only_in_echoed_source <<'EOF'
// expect: seven is no answer
#ifndef FIXED
int answer = undeclared; // seven is no answer
#endif
EOF
try fail "with -DFIXED either" twin_does_not_compile <<'EOF'
// expect: seven is no answer
static_assert(false, "seven is no answer");
EOF
try fail "later than line 15" buried <<'EOF'
// expect: seven is no answer
#ifndef FIXED
template <int depth> struct nested : nested<depth - 1> {};
template <> struct nested<0> {
    int a = one;
    int b = two;
    int c = three;
    int d = four;
    int e = five;
    int f = six;
};
static_assert(sizeof(nested<3>) == 1, "seven is no answer");
#endif
EOF
try fail "has 0 lines" no_sentence <<'EOF'
static_assert(false, "seven is no answer");
EOF
try fail "has 2 lines" two_sentences <<'EOF'
// expect: seven is no answer
// expect: eight is no answer
static_assert(false, "seven is no answer");
EOF
try fail "expects an empty sentence" empty_sentence <<'EOF'
// expect:
static_assert(false, "seven is no answer");
EOF
exit $wrong
