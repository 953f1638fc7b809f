#!/bin/sh
# clang-tidy with .clang-tidy over the sources of what is installed. Prints every warning, then how
# often each check warned; a file with warnings has failed. A quarter of an hour on two cores.
#
#   tests/tidy.sh [FILE...]      default: all of planner, shim, array, calibrate and cli
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(pwd)/build/test
# shellcheck source=tests/build.sh disable=SC1091
. tests/build.sh
tidy=${CLANG_TIDY:-clang-tidy-14}
sh tests/install-deps.sh "$tidy" || echo "going on without it"
if ! command -v "$tidy" >/dev/null 2>&1; then
    echo "no $tidy"
    echo "0 passed, 0 failed, 1 skipped"
    exit 1
fi
prepare # config.h
mpi=$(sed -n 's/^MPI_CPPFLAGS = *//p' tests/Makefile)
flags="-std=c11 -D_GNU_SOURCE -DHAVE_CONFIG_H -I. -I$root -I$root/array $mpi"
flags="$flags $(pkg-config --cflags hwloc jansson)"
[ $# -gt 0 ] || set -- planner shim array calibrate cli

step "$tidy"
(cd "$root" && find "$@" -name '*.c' | sort) >tidy-files.txt
export tidy root flags
# shellcheck disable=SC2016
xargs -P "$n_jobs" -I '{}' sh -c '
    "$tidy" --quiet "$root/{}" -- $flags 2>/dev/null </dev/null | grep -E ": (warning|error): "
    true' <tidy-files.txt | sed "s|^$root/||" | sort -u >tidy.log # one line is written at once
cat tidy.log
step "how often"
sed -n 's/.*\[\(.*\)\]$/\1/p' tidy.log | sort | uniq -c | sort -rn
step "results"
n_failed=$(cut -d : -f 1 tidy.log | sort -u | grep -cxFf tidy-files.txt)
echo "$(($(wc -l <tidy-files.txt) - n_failed)) passed, $n_failed failed"
[ ! -s tidy.log ]
