#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
set -euo pipefail

# What building and running the examples needs, the guest included.
build=(
  cmake g++ ninja-build pkgconf
  libboost1.81-dev libcli11-dev libfmt-dev libibverbs-dev librdmacm-dev
  ibverbs-providers
  binutils cpio gcc iproute2 kmod make qemu-system-x86 xz-utils
)
# What the tests need besides.
test=(
  catch2 libbenchmark-dev
  clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev
  git shellcheck valgrind
)
# What bench/soft.sh builds its program with, and measures beside it.
bench=(
  cmake g++ ninja-build pkgconf
  libbenchmark-dev libboost1.81-dev libibverbs-dev librdmacm-dev
  libfabric-bin ucx-utils
)

usage() {
  cat <<'END'
Usage: .ci/packages.sh build|test|bench

Installs, on Debian 12, those packages that are missing: `build` for the examples, `test` for
everything that is tested, `bench` for bench/soft.sh.
On another system it lists what is needed.

Exit status: 0 all are there, 1 they are not and a sentence says why, 2 wrong usage.
END
}

stop() { printf 'packages: %s\n' "$*" >&2; exit 1; }

case ${1-} in
  build) packages=("${build[@]}") ;;
  test) packages=("${build[@]}" "${test[@]}") ;;
  bench) packages=("${bench[@]}") ;;
  --help) usage; exit ;;
  *) usage >&2; exit 2 ;;
esac

# shellcheck source=/dev/null
system=$( (. /etc/os-release && echo "${ID-} ${VERSION_ID-}") 2>/dev/null) || system='unknown'
[[ $system == 'debian 12' ]] ||
  stop "this system is not Debian 12. Please install what these packages of Debian 12 hold, then pass --no-packages:
  ${packages[*]}
(cmake >= 3.25, g++ >= 12, clang >= 19, Boost >= 1.81, Catch2 >= 2.13)"

# installed PATTERN...: names of the installed packages among these. dpkg-query fails when it knows none of them.
installed() {
  { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } | sed -n 's/^installed //p'
}

mapfile -t missing < <(comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) <(installed "${packages[@]}" | sort -u))
((${#missing[@]})) || exit 0

# The -dev packages of two Boost versions exclude each other, and the other one is somebody's choice.
if [[ " ${missing[*]} " == *' libboost1.81-dev '* ]]; then
  others=$(installed 'libboost*1.74-dev' | paste -sd ' ')
  [[ -z $others ]] ||
    stop "verbena needs libboost1.81-dev, which conflicts with what is installed: $others.
Nothing was changed. If you can do without these, replace them: apt-get install libboost1.81-dev"
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || stop "missing, and neither root nor sudo to install them: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
log=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/logs/packages.log
mkdir -p "$(dirname "$log")"

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1; }
install() { apt install --yes --no-install-recommends --no-remove "${missing[@]}"; }

printf 'packages: installing %s\n' "${missing[*]}"
: >"$log"
compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || apt update || true
install || { apt update && install; } || {
  tail -n 8 "$log" >&2
  stop "apt-get could not install ${missing[*]} (see build/logs/packages.log)"
}
