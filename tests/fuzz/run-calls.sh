#!/bin/sh
# Compares runs of calls_fuzz (calls_fuzz.c: MPI programs made from seeds) with the preloaded library
# and without it: both must print the same, whatever the settings.
#
#   run-calls.sh BUILDDIR LIBCARPOOL YIELDLIB [N_SEEDS [FIRST_SEED]]
#
# BUILDDIR holds calls_fuzz; without it the program is compiled there (MPICC, mpicc.mpich). YIELDLIB
# is preloaded in all runs (waiting ranks give way). N_SEEDS (20) seeds from FIRST_SEED (1), of 2 to 12
# ranks; the settings of a run follow from its seed. CALLS_OPTIONS is passed on to the program
# (--without LIST), CALLS_RUNS is how many settings a seed is run with (2), MPIEXEC the launcher.
# Writes TAP; of a failure the command that repeats it and the first difference. Exits with 1 when a
# seed failed.
set -u
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null
[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB [N_SEEDS [FIRST_SEED]]" >&2; exit 2; }
# shellcheck source=tests/tap.sh disable=SC1091
. "$(dirname "$0")/../tap.sh"
source=$(cd "$(dirname "$0")" && pwd) || exit 2
build=$(cd "$1" && pwd) || exit 2
library=$2 yield=$3 n_seeds=${4:-20} first=${5:-1}
mpiexec=${MPIEXEC:-mpiexec.hydra} limit=60 options=${CALLS_OPTIONS:-} n_runs=${CALLS_RUNS:-2}
case $library$yield in
    /*) ;;
    *) echo "$0: libraries are named by their full path" >&2; exit 2 ;;
esac
clean_environment
make_scratch
find_gently
cd "$tmp" || exit 2 # files that the program writes
program=$build/calls_fuzz
if ! [ -x "$program" ]; then
    "${MPICC:-mpicc.mpich}" -std=c11 -O1 -g -D_GNU_SOURCE "$source"/calls_*.c -o "$program" || exit 2
fi

run() { # name of the output files, preload, arguments of mpiexec...
    out=$1 preload=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 5 $limit $gently "$mpiexec" -n "$n" -genv LD_PRELOAD "$preload" "$@" \
        "$program" "$seed" $options >"$out.out" 2>"$out.err" </dev/null
    code=$?
    # UCX warns on standard output of what was left posted: that is said, and is no result
    grep -h UCX "$out.out" | sed 's/^.*UCX/UCX/' | sort | uniq -c | sed 2q | sed "s/^/# seed $seed: /"
    sed -i '/ UCX /d' "$out.out"
}

pick() { # number, words...: the word of that number, counted round
    k=$(($1 % ($# - 1) + 1))
    shift $k
    echo "$1"
}

settle() { # number: what the run's settings are
    mode=$(pick "$1" force auto force force profile force force auto force off)
    strategy=$(pick $(($1 / 2)) vpt:2 direct share node vpt:3 balance auto)
    embed=$(pick "$1" exact off exact all exact)
    hold=$(pick "$1" 500 0 500 2000)
    learn=$(pick "$1" 1 3 1)
    # all: floating-point sums may then be added up in another order than MPI's
    [ "$embed" != all ] || embed=exact
    settings="-genv CARPOOL_MODE $mode -genv CARPOOL_STRATEGY $strategy -genv CARPOOL_EMBED $embed"
    settings="$settings -genv CARPOOL_HOLD $hold"
    settings="$settings -genv CARPOOL_LEARN $learn"
}

tell_how() { # preload, settings
    say "mpiexec.hydra -n $n $cliques -genv LD_PRELOAD $1 $2 $program $seed $options"
}

compare() { # number of the run
    settle $((seed + 7 * $1))
    name="seed $seed, $n ranks${cliques:+, 3 nodes}: $mode, $strategy, embed $embed"
    # shellcheck disable=SC2086
    run now "$library:$yield" $cliques $settings
    if [ $code -eq 0 ] && cmp -s reference.out now.out; then
        ok "$name"
        return
    fi
    not_ok "$name"
    tell_how "$library:$yield" "$settings"
    say "exit status $code"
    say "$(grep -h -e WRONG -e HANGS -e Assertion -e 'signal' now.out now.err | sed 8q)"
    say "$(diff reference.out now.out | grep -a '^[<>] iteration' | sed 2q)"
}

# How many ranks the seed's runs have, on how many nodes.
place() {
    n=$((2 + seed % 11)) cliques=
    [ $((seed / 11 % 3)) -ne 1 ] || cliques="-genv MPIR_CVAR_NUM_CLIQUES 3"
}

# MPICH 4.2.1 (Debian 13) often leaves the status of a persistent receive empty.
seed=$first
while [ "$seed" -lt $((first + (n_seeds < 5 ? n_seeds : 5))) ]; do
    place
    # shellcheck disable=SC2086
    run reference "$yield" $cliques
    if [ $code -ne 0 ] && grep -q 'WRONG.*source .* persistent$' reference.out reference.err; then
        echo "# MPI alone loses statuses of persistent receives: runs are without them"
        case $options in
            *--without*) options=$options,persistent ;;
            *) options="$options --without persistent" ;;
        esac
        break
    fi
    seed=$((seed + 1))
done

seed=$first
n_skipped=0
while [ "$seed" -lt $((first + n_seeds)) ]; do
    place
    # shellcheck disable=SC2086
    run reference "$yield" $cliques
    if [ $code -ne 0 ]; then
        # MPICH 4.0.2 sometimes does (MPI_Buffer_detach): then there is nothing to compare with
        skip "seed $seed, $n ranks" "MPI alone fails"
        n_skipped=$((n_skipped + 1))
        tell_how "$yield" ""
        say "exit status $code"
        say "$(grep -h -e WRONG -e HANGS -e Assertion reference.out reference.err | sed 8q)"
    else
        k=0
        while [ $k -lt "$n_runs" ]; do
            compare $k
            k=$((k + 1))
        done
    fi
    seed=$((seed + 1))
done
check "MPI alone runs most of them" test $((4 * n_skipped)) -le "$n_seeds"
done_testing
