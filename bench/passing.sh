#!/bin/sh
# Tables of results/overhead.md, as Markdown: what the preload adds to the processor time of messages of
# programs that never repeat, receive from anyone, or probe ("messages that are left to MPI"), and
# what it makes of whole programs.
#
#   bench/passing.sh BUILDDIR [RUNS [messages|work|programs]]
#
# BUILDDIR is where configure, make and, for `programs`, make check ran. `messages` (default) are
# loops of nothing but messages, `work` those with computation in each exchange. A run of
# bench/messages gives one ratio, the median over its pairs of blocks; addresses differ from run to
# run and with them the ratio, so there are RUNS
# (default 15) of each kind, those without the preload (two names for one function: what the
# measurement itself adds) in turns with those with it. Printed are median and quartiles over the runs.
#
# `programs` runs those of tests/mpi/users, each RUNS times in every mode, in turns: wall-clock time
# without the preload, median and quartiles, and of the modes the ratio of each run to the one
# without that went before it. HALO, CG, STENCIL and MULTIGRID replace their arguments.
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
        "$build/bench/messages" --peers 2 --per-peer 4 --blocks 801 "$@" 2>/dev/null |
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

seconds() { # preload, mode, ranks, program and arguments: wall-clock time of a run
    preload=$1 mode=$2 n=$3 program=$4
    shift 4
    begin=$(date +%s.%N)
    timeout 300 "${mpiexec:-mpiexec.hydra}" -n "$n" -genv LD_PRELOAD "$preload" \
        -genv CARPOOL_MODE "$mode" "$build/tests/mpi/users/$program" "$@" >"$work/out" ||
        echo "$program failed" >&2
    echo "$begin $(date +%s.%N)" | awk '{ print $2 - $1 }'
}

whole() { # ranks, program and arguments
    n=$1
    shift
    rm -f "$work"/*
    i=0
    while [ $i -lt "$runs" ]; do
        plain=$(seconds "$yield" off "$n" "$@")
        echo "$plain" >>"$work/without"
        for mode in off profile auto force; do
            echo "$(seconds "$library:$yield" $mode "$n" "$@") $plain" |
                awk '{ print $1 / $2 }' >>"$work/$mode"
        done
        i=$((i + 1))
    done
    echo "| $* | $n | $(quartiles "$work/without") | $(quartiles "$work/off") |" \
        "$(quartiles "$work/profile") | $(quartiles "$work/auto") | $(quartiles "$work/force") |"
}

table() {
    echo "| traffic | without the preload | off | profile | auto |"
    echo "|---|---|---|---|---|"
}

case ${3:-messages} in
messages)
    table
    row "never repeats" --traffic random
    row "wildcards" --traffic wildcard
    row "probes" --traffic probe
    row "never repeats, 4 communicators" --traffic random --communicators 4
    ;;
work)
    table
    for us in 10 50; do
        row "never repeats, $us us of work" --traffic random --work $us
        row "wildcards, $us us of work" --traffic wildcard --work $us
    done
    ;;
programs)
    echo "| program | ranks | s without the preload | off | profile | auto | force |"
    echo "|---|---|---|---|---|---|---|"
    # shellcheck disable=SC2086 # arguments
    for n in 4 8 16; do
        whole $n halo ${HALO:-256 2000}
        whole $n cg ${CG:-128 1500}
        whole $n stencil ${STENCIL:-}
        whole $n multigrid ${MULTIGRID:-16 300}
    done
    ;;
esac
