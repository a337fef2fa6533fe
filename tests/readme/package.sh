#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# package.sh README COMPILER PREFIX DATADIR FOLDER: the first program builds and runs with the README's CMakeLists.txt and
# with its pkg-config line (but for the compiler's name), where the library is installed in PREFIX.
set -eu
block=$(dirname "$0")/block.sh
rm -rf "$5"
mkdir -p "$5"
"$block" "$1" cpp 1 >"$5/hello.cpp"
"$block" "$1" cmake 1 >"$5/CMakeLists.txt"
"$block" "$1" sh 1 | sed "s|^g++ |'$2' |" >"$5/build.sh"
cd "$5"
cmake -S . -B build -DCMAKE_PREFIX_PATH="$3" -DCMAKE_CXX_COMPILER="$2"
cmake --build build
build/hello
PKG_CONFIG_PATH=$3/$4/pkgconfig sh -e build.sh
./hello
