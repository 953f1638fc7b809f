#!/bin/sh
# The table "messages that are left to MPI" of README.md, as Markdown: what the preload adds to the
# processor time of messages of programs that never repeat, receive from anyone, or probe.
#
#   bench/passing.sh BUILDDIR [RUNS]
#
# BUILDDIR is where configure and make ran. A run of bench/messages gives one ratio, the median over
# its pairs of blocks; addresses differ from run to run and with them the ratio, so there are RUNS
# (default 15) of each kind, those without the preload (two names for one function: what the
# measurement itself adds) in turns with those with it. Printed are median and quartiles over the runs.
set -u
if [ $# -lt 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
build=$1
runs=${2:-15}
library=$build/shim/.libs/libcarpool.so
yield=$build/bench/.libs/libyield.so
mpiexec=$(sed -n 's/^MPIEXEC = *//p' "$build/Makefile")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

ratio() { # preload, mode, arguments of bench/messages
    preload=$1 mode=$2
    shift 2
    timeout 120 "${mpiexec:-mpiexec.hydra}" -n 2 -genv LD_PRELOAD "$preload" -genv CARPOOL_MODE "$mode" \
        "$build/bench/messages" --peers 2 --per-peer 4 --blocks 801 "$@" |
        awk '/^ratio median/ { print $NF }'
}

quartiles() { # file of numbers
    sort -n "$1" | awk '
        { a[NR] = $1 }
        END { printf "%.3f (%.3f..%.3f)", a[int((NR + 1) / 2)], a[int((NR + 3) / 4)],
              a[int((3 * NR + 3) / 4)] }'
}

row() { # name, arguments of bench/messages
    name=$1
    shift
    rm -f "$work"/*
    i=0
    while [ $i -lt "$runs" ]; do
        ratio "$yield" off "$@" >>"$work/without"
        for mode in off profile auto; do
            ratio "$library:$yield" $mode "$@" >>"$work/$mode"
        done
        i=$((i + 1))
    done
    echo "| $name | $(quartiles "$work/without") | $(quartiles "$work/off") |" \
        "$(quartiles "$work/profile") | $(quartiles "$work/auto") |"
}

echo "| traffic | without the preload | off | profile | auto |"
echo "|---|---|---|---|---|"
row "never repeats" --traffic random
row "wildcards" --traffic wildcard
row "probes" --traffic probe
row "never repeats, 4 communicators" --traffic random --communicators 4
