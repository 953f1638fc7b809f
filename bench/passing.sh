#!/bin/sh
# Tables of results/overhead.md, as Markdown: what the preload adds to the processor time of messages of
# programs that never repeat, receive from anyone, or probe ("messages that are left to MPI"), and
# what it makes of whole programs.
#
#   bench/passing.sh BUILDDIR [RUNS [messages|work|programs [SECONDS...]]]
#
# BUILDDIR is where configure, make and, for `programs`, make check ran. `messages` (default) are
# loops of nothing but messages, `work` those with computation in each exchange. A run of
# bench/messages gives one ratio, the median over its pairs of blocks; addresses differ from run to
# run and with them the ratio, so there are RUNS
# (default 15) of each kind, those without the preload (two names for one function: what the
# measurement itself adds) in turns with those with it. Printed are median and quartiles over the runs.
#
# `programs` runs those of tests/mpi/users on 8 and 16 ranks, so many iterations that MPI alone takes each of
# SECONDS (default: 0.3 and 3), RUNS times without the preload, again without it, and in each of MODES (default: auto),
# in turns. Printed are the median of the runs without, in seconds, and for each mode the ratios of its runs to the
# one without beside it, of wall-clock time and of processor time; `again` tells how much of that is chance. RANKS and
# PROGRAMS (names) replace what is run.
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

run() { # preload, mode, ranks, program, iterations: wall-clock and processor seconds of a run, into $wall and $cpu
    preload=$1 mode=$2 n=$3 program=$4 count=$5
    # shellcheck disable=SC2046 # arguments
    set -- $(arguments "$program" "$count")
    times >"$work/times" # of this shell, not of one that substitutes
    before=$(sed -n 2p "$work/times" | sed 's/[ms]/ /g' | awk '{ print 60 * ($1 + $3) + $2 + $4 }')
    begin=$(date +%s.%N)
    timeout 300 "${mpiexec:-mpiexec.hydra}" -n "$n" -genv LD_PRELOAD "$preload" \
        -genv CARPOOL_MODE "$mode" "$build/tests/mpi/users/$program" "$@" >"$work/out" 2>&1 ||
        echo "$program failed" >&2
    end=$(date +%s.%N)
    times >"$work/times"
    after=$(sed -n 2p "$work/times" | sed 's/[ms]/ /g' | awk '{ print 60 * ($1 + $3) + $2 + $4 }')
    wall=$(echo "$begin $end" | awk '{ print $2 - $1 }')
    cpu=$(echo "$before $after" | awk '{ print $2 - $1 }')
}

arguments() { # program, iterations
    case $1 in
        halo) echo "64 $2" ;;
        multigrid) echo "16 $2" ;;
        stencil) echo "16 $2" ;;
        cg) echo "40 $2 20" ;;
        mesh|workers|pipeline|search) echo "$2" ;;
    esac
}

whole() { # ranks, program, seconds
    n=$1 program=$2 seconds=$3 count=40
    rm -f "$work"/*
    # how many iterations take so long: from two runs, since starting takes its time, too
    run "$yield" off "$n" "$program" 1
    start=$wall
    while run "$yield" off "$n" "$program" $count &&
        [ "$(echo "$wall $start" | awk '{ print $1 < 1.5 * $2 + 0.2 }')" = 1 ]; do
        count=$((count * 4))
    done
    count=$(echo "$wall $start $seconds $count" |
        awk '{ n = $4 * $3 / ($1 - $2); print n < 1 ? 1 : int(n) }')
    i=0 forth="plain $kinds" back=
    for kind in $forth; do back="$kind $back"; done
    while [ $i -lt "$runs" ]; do
        [ $((i % 2)) = 0 ] && turns=$forth || turns=$back
        for kind in $turns; do
            case $kind in
                plain|again) run "$yield" off "$n" "$program" "$count" ;;
                *) run "$library:$yield" "$kind" "$n" "$program" "$count" ;;
            esac
            echo "$wall $cpu" >"$work/$kind.now"
        done
        cut -d ' ' -f 1 "$work/plain.now" >>"$work/without"
        for kind in $kinds; do
            paste -d ' ' "$work/$kind.now" "$work/plain.now" |
                awk '{ print $1 / $3 >> w; print $2 / $4 >> c }' w="$work/$kind.wall" c="$work/$kind.cpu"
        done
        i=$((i + 1))
    done
    line="| $program, $count | $n | $(quartiles "$work/without")"
    for mode in $kinds; do
        line="$line | $(quartiles "$work/$mode.wall"), $(quartiles "$work/$mode.cpu")"
    done
    echo "$line |"
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
    shift 3
    [ $# -gt 0 ] || set -- 0.3 3
    kinds="again ${MODES:-auto}"
    line="| program, iterations | ranks | s without the preload"
    for mode in $kinds; do line="$line | $mode: wall-clock time, processor time"; done
    echo "$line |"
    echo "$line |" | sed 's/[^|]*|/---|/g; s/^---//'
    for seconds in "$@"; do
        for n in ${RANKS:-8 16}; do
            for program in ${PROGRAMS:-halo cg stencil multigrid mesh workers pipeline search}; do
                whole "$n" "$program" "$seconds"
            done
        done
    done
    ;;
esac
