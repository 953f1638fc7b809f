#!/bin/sh
# The protocols of managed messages, of lanes and of appointments, as modelled in pt2pt.pml, away.pml, lane.pml and
# appointment.pml: spin finds no error in them, and finds each error that is put into them.
#
#   check_model.sh      with top_srcdir in the environment; CC, default cc
#
# Every check is exhaustive unless its line says otherwise. Writes TAP; comments tell numbers of
# states. Skips all when spin or a C compiler is missing.
set -u
: "${top_srcdir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
cc=${CC:-cc}
seconds=600   # of processor time, far from what a search takes: it is stopped then, which is a failure
megabytes=2000
depth=100000
command -v spin >/dev/null 2>&1 || skip_all "spin is missing"
command -v "${cc%% *}" >/dev/null 2>&1 || skip_all "no C compiler"

tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cd "$tmp" || exit 2
cp "$top_srcdir"/tests/model/*.pml . || exit 2

# Builds and runs the verifier of $model; what it says is in $tmp/out. Fails when it did not come to its end.
search() { # -D of the model...
    : >out
    spin -a "$@" "$model" >out 2>&1 || return 1
    # shellcheck disable=SC2086  # not optimised: most of the time goes into compiling
    $cc -O0 -w -DCOLLAPSE "-DMEMLIM=$megabytes" -DVECTORSZ=2048 -DSAFETY -o pan pan.c >out 2>&1 ||
        return 1
    (ulimit -St "$seconds" && exec ./pan "-m$depth") >out 2>&1
    code=$?
    [ $code -ne 152 ] || echo "pan: stopped after $seconds s: that is a limit of time, no error" >>out # by SIGXCPU
    [ $code -eq 0 ] || return 1
    grep -q 'errors: ' out
}

numbers() {
    sed -n -e 's/^ *\([0-9]*\) states, stored.*/#   \1 states/p' \
        -e 's/^pan: elapsed time \(.*\) seconds/\1 s/p' out | paste -s -d' ' -
}

holds() { # description, -D...
    what=$1
    shift
    if search "$@" && grep -q 'errors: 0$' out && ! grep -Eq 'too small|out of memory|max search depth' out
    then
        ok "$what"
        numbers
    else
        not_ok "$what"
        say "$*: $(grep -E '^pan|rror|too small|out of memory' out || tail -n 5 out)"
    fi
}

finds() { # description, what spin must say, -D...
    what=$1 said=$2
    shift 2
    search "$@"
    if grep -q "^pan:1: $said" out; then
        ok "$what"
        numbers
    else
        not_ok "$what"
        say "$*: not \"$said\": $(grep -E '^pan|rror' out || tail -n 5 out)"
    fi
}

model=pt2pt.pml
holds "3 ranks, any two deviations" -DDEVIATIONS=2
holds "3 ranks, wildcards" -DANY -DDEVIATIONS=1
holds "3 ranks, receives before or after the sends" -DORDER -DDEVIATIONS=1
holds "3 ranks, tags in another order, with wildcards" -DTAGS -DDEVIATIONS=0
holds "3 ranks, synchronous sends" -DSYNC -DONCE -DDEVIATIONS=1
holds "3 ranks, reductions, unexpected messages" -DREDUCE -DLATE -DDEVIATIONS=1
holds "3 ranks, reductions with a rank outside" -DREDUCE -DOUTSIDER -DDEVIATIONS=1
holds "3 ranks, reductions that carry messages" -DEMBED -DDEVIATIONS=0
holds "3 ranks, a reduction that carries messages" -DEMBED -DONCE -DDEVIATIONS=1
holds "4 ranks, a reduction that carries messages" -DEMBED -DRANKS=4 -DONCE -DDEVIATIONS=0
holds "3 ranks, drain with open receives" -DOPEN -DDEVIATIONS=1
holds "3 ranks, drain in rounds" -DONCE -DOPEN -DDRAIN_SEGMENTS -DDEVIATIONS=0
holds "4 ranks, drain in rounds" -DRANKS=4 -DFAN -DONCE -DOPEN -DDRAIN_SEGMENTS -DDEVIATIONS=1
holds "4 ranks, two intermediates, any two deviations" -DRANKS=4 -DONCE -DDEVIATIONS=2

finds "an intermediate that waits for its own segment" "invalid end state" -DBUG_WAITS_FOR_OWN
finds "segments without numbers" "assertion violated .*next_match" -DBUG_NO_NUMBERS
finds "a drain that counts own messages only" "invalid end state" -DBUG_DRAIN_OWN -DOPEN
finds "a drain that counts rides" "assertion violated ((n_open==0)" \
    -DBUG_DRAIN_RIDES -DONCE -DOPEN -DDEVIATIONS=0
finds "a drain that counts rides and held segments" "assertion violated ((n_open==0)" \
    -DBUG_DRAIN_RIDES_HELD -DRANKS=4 -DFAN -DONCE -DOPEN -DDEVIATIONS=1
finds "a reduction that is entered without polling" "invalid end state" \
    -DBUG_REDUCTION_UNPOLLED -DREDUCE
finds "segments in a reduction that do not leave by the hold time" "invalid end state" \
    -DBUG_EMBED_HOLDS -DEMBED -DONCE -DDEVIATIONS=0
finds "one set of vectors for two reductions" "assertion violated (slot" \
    -DBUG_EMBED_ONE_SET -DEMBED -DDEVIATIONS=0
finds "polling that is each rank's own decision" "invalid end state" -DBUG_OUTSIDER -DREDUCE -DOUTSIDER

model=away.pml
holds "3 ranks, calls that wait inside MPI, and ranks outside it"
finds "a call that is entered before those it waits for have come" "invalid end state" -DBUG_NO_BARRIER
finds "a barrier before it that does not poll" "invalid end state" -DBUG_BARRIER_UNPOLLED
finds "ranks outside MPI that do not serve" "invalid end state" -DBUG_NO_HELPER

model=lane.pml
holds "a lane of two slots"
finds "a number that is written before its message" "assertion violated (half" -DBUG_NUMBER_FIRST
finds "a slot that is given back before it is read" "assertion violated .*reads" -DBUG_TAKEN_FIRST
finds "a lane that is found full one message too late" "assertion violated .*reads" -DBUG_FULL
finds "a writer that looks once whether its lane is full" "invalid end state" -DBUG_NO_RETRY
finds "counters that wrap around where a slot is used twice" "assertion violated .*reads" -DBUG_ODD

model=appointment.pml
holds "3 ranks, two appointments" -DRANKS=3
holds "4 ranks, two appointments"
holds "4 ranks, some of them at the second appointment already" -DAHEAD
finds "ranks that meet when all have come" "assertion violated .*n_met" -DBUG_ONE_ROUND
finds "a rank that goes and does not tell" "invalid end state" -DBUG_SILENT
finds "messages of any appointment" "invalid end state" -DBUG_UNNUMBERED
finds "a rank that answers for those below it" "assertion violated .*n_met" -DBUG_ASKS_ON

done_testing
