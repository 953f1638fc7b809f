#!/bin/sh
# Runs `exchange` with random shapes, deviations, seeds and ranks, with and without the library.
#
#   pt2pt-stress.sh BUILDDIR LIBCARPOOL YIELDLIB [SEEDS]
#
# BUILDDIR holds the program, YIELDLIB is preloaded in all runs. SEEDS is a number N (seeds 1 to N,
# default 50) or a range A-B; a seed decides everything. STRESS_RANKS, STRESS_SHAPES,
# STRESS_DEVIATIONS, STRESS_STRATEGIES and STRESS_COMMS (words) replace what is chosen from,
# STRESS_TIMEOUT the seconds of a run, MPIEXEC the launcher; STRESS_KEEP is a directory that is
# given the outputs of failed runs. Other CARPOOL_ variables pass on to the runs.
#
# A seed fails when the exit code is not 0, the output is not plain MPICH's, or something is on
# stderr; then the command line is printed. Exits with 1 when one failed.
set -uf
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB [SEEDS]" >&2; exit 2; }
build=$1 library=$2 yield=$3 seeds=${4:-50}
[ -x "$build/exchange" ] || { echo "$build/exchange is not there: make check" >&2; exit 2; }
ranks=${STRESS_RANKS:-2 3 4 5 6 8 12 16}
shapes=${STRESS_SHAPES:-waits waitall sendsfirst waitany waitsome test testall testany testsome \
    mixed persistent persistent-mixed sendrecv replace blocking interleaved interleaved-waits \
    one-sided skip sizes sizes-waits types types-sizes ssend bsend rsend modes}
deviations=${STRESS_DEVIATIONS:-none none mix mix mix silent double larger reorder newpeer self \
    procnull wildcard probe freed slow barrier cancel truncate commfree die silent,double,larger \
    wildcard,self,newpeer probe,self,larger}
strategies=${STRESS_STRATEGIES:-direct vpt:2 vpt:3 grid:far:increase share node:partner balance:hops=3 auto}
comms=${STRESS_COMMS:-world dup split}
limit=${STRESS_TIMEOUT:-40}
mpiexec=${MPIEXEC:-mpiexec.hydra}

tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
n_runs=0
n_failed=0

# A small generator; the state is below 2^31, so that every shell can compute it.
draw() { # how many: sets $drawn to 0 ... how many - 1
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$((state / 65536 % $1))
}

pick() { # words: sets $picked to one of them
    draw $#
    shift $drawn
    picked=$1
}

choose() { # seed: what is run
    state=$(($1 * 7919 % 2147483648))
    # shellcheck disable=SC2086
    { draw 7; draw 7
      pick $ranks; n=$picked
      pick $shapes; shape=$picked
      pick $deviations; deviation=$picked
      pick $strategies; strategy=$picked
      pick $comms; comm=$picked; }
    pick allreduce barrier mixed; collective=$picked
    pick 3 3 4 8; per_node=$picked
    draw 20
    case $deviation-$comm in *commfree*-world) comm=dup ;; esac
    args="--shape $shape --seed $1 --comm $comm --collective $collective --iterations $((16 + drawn))"
    case $deviation in
        none) ;;
        *) draw 12; args="$args --deviate $deviation --at $((3 + drawn))"
           draw 3; [ "$deviation" = mix ] || args="$args --times $((1 + drawn))" ;;
    esac
}

run() { # name of the output files, preload, settings...
    out=$tmp/$1
    line="$mpiexec -n $n -genv LD_PRELOAD $2"
    shift 2
    line="$line $* $build/exchange $args"
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" $line >"$out.out" 2>"$out.err" </dev/null
    code=$?
}

failed() { # seed, why
    n_failed=$((n_failed + 1))
    echo "FAILED seed $1: $2"
    echo "    $line"
    diff "$tmp/ref.out" "$tmp/now.out" 2>/dev/null | sed 5q | cut -c 1-200 | sed 's/^/    | /'
    sed 5q "$tmp/now.err" 2>/dev/null | cut -c 1-200 | sed 's/^/    ! /'
    if [ -n "${STRESS_KEEP:-}" ]; then
        mkdir -p "$STRESS_KEEP"
        for file in "$tmp"/*.out "$tmp"/*.err; do
            cp "$file" "$STRESS_KEEP/$1.${file##*/}"
        done
        echo "$line" >"$STRESS_KEEP/$1.line"
    fi
}

judge() { # seed
    why=
    case $code in
        0) ;;
        124|137) why="no end after $limit s" ;;
        *) why="exit code $code" ;;
    esac
    cmp -s "$tmp/ref.out" "$tmp/now.out" || why="${why:+$why, }output differs"
    # few ranks: strategies may not fit, which is said
    grep -v '^carpool\[[0-9]*\] warn' "$tmp/now.err" >"$tmp/rest.err" && why="${why:+$why, }stderr"
    [ -z "$why" ] || failed "$1" "$why"
}

case $seeds in
    *-*) seed=${seeds%-*} last=${seeds#*-} ;;
    *) seed=1 last=$seeds ;;
esac
while [ "$seed" -le "$last" ]; do
    choose "$seed"
    rm -f "$tmp"/*.out "$tmp"/*.err
    run ref "$yield"
    if [ $code -ne 0 ]; then
        cp "$tmp/ref.err" "$tmp/now.err"
        cp "$tmp/ref.out" "$tmp/now.out"
        failed "$seed" "without the library: exit code $code"
    else
        run now "$library:$yield" -genv CARPOOL_MODE force -genv CARPOOL_STRATEGY "$strategy" \
            -genv CARPOOL_RANKS_PER_NODE "$per_node"
        judge "$seed"
    fi
    n_runs=$((n_runs + 1))
    seed=$((seed + 1))
done
echo "$n_runs seeds, $n_failed failed"
[ $n_failed -eq 0 ]
