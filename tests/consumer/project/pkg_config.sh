#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# pkg_config.sh COMPILER FOLDER_OF_THE_PC_FILE PROGRAM
set -eu
export PKG_CONFIG_PATH=$2
read -ra flags <<<"$(pkg-config --cflags --libs verbena)"
"$1" -std=c++20 "$(dirname "$0")/main.cpp" -o "$3" "${flags[@]}"
"$3"
