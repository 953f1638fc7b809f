#!/bin/sh
# Strong scaling of a solver with computation, on a simulated cluster, in the schemes of
# [Selvitopi-embed].
#
#   sh bench/solver.sh BUILDDIR OUT.tsv [RANKS...]
#
# Runs bench/cg on matrices of the sizes of that paper's, each in five schemes: conventional (mode
# off), the same rerouted (auto), reorganised so that reductions carry the messages (auto), and this
# with the parts numbered by KLF and by KLR. SOLVER_PS picoseconds are charged for each nonzero and
# each entry of a vector (default 2000). Simulated is the paper's Cray XE6 (gemini.machine, a torus of
# nodes of 32 cores); RANKS are powers of two from 64 on (default 64 128 256 512). Writes a line for
# each run: the time of an iteration, and the speed-up over one rank. A line that OUT.tsv has already
# is not made anew. Exits with 1 when a run failed. SOLVER_MATRICES: some of the names in the list.
set -u
[ $# -ge 2 ] && [ -d "$1" ] || { sed -n '5p' "$0" | cut -c 5- >&2; exit 2; }
bench=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
out=$2
shift 2
[ $# -gt 0 ] || set -- 64 128 256 512
SIMULATE_SECONDS=${SIMULATE_SECONDS:-3600}
export SIMULATE_SECONDS
ps=${SOLVER_PS:-2000}
machine=$bench/sim/gemini.machine
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

make_matrix() { # name
    case $1 in
        fe29) "$build/bench/generate" fe --nodes-per-side 29 ;;       # as crystm03
        rgg32k) "$build/bench/generate" rgg --rows 32226 --degree 13 ;; # as helm3d01
        fe45) "$build/bench/generate" fe --nodes-per-side 45 ;;       # as 144
        *) echo "solver.sh: no matrix $1; there are fe29, rgg32k, fe45" >&2; exit 2 ;;
    esac >"$work/$1.mtx"
}
iteration_us() { # mode, ranks, topology, matrix, arguments...: microseconds
    mode=$1 n_ranks=$2 topology=$3 matrix=$4
    shift 4
    CARPOOL_MODE=$mode nice sh "$bench/sim/simulate.sh" -x cg "$build" "$n_ranks" "$machine" "$topology" --json \
        --nonzero-ps "$ps" "$@" "$work/$matrix.mtx" 2>"$work/err" |
        sed -n 's/.*"time_us": \([0-9.]*\).*/\1/p'
}
run_scheme() { # matrix, ranks, scheme, mode, arguments...
    name=$1 ranks=$2 scheme=$3 mode=$4
    shift 4
    awk -F'\t' -v m="$name" -v n="$ranks" -v s="$scheme" '
        $1 == m && $2 == n && $3 == s { found = 1 } END { exit !found }' "$out" && return
    us=$(iteration_us "$mode" "$ranks" torus "$name" --partition metis --solves 2 --warmup 40 --iterations 30 "$@")
    if [ -z "$us" ]; then
        echo "solver.sh: $name, $ranks ranks, $scheme failed: $(head -n 3 "$work/err")" >&2
        failed=1
        return
    fi
    awk -v m="$name" -v n="$ranks" -v s="$scheme" -v us="$us" -v one="$one" 'BEGIN {
        printf "%s\t%s\t%s\t%.2f\t%.2f\n", m, n, s, us, one / us }' | tee -a "$out"
}

[ -s "$out" ] || printf 'matrix\tranks\tscheme\tus\tspeedup\n' >"$out" || exit 1
for name in ${SOLVER_MATRICES:-fe29 rgg32k fe45}; do
    make_matrix "$name"
    one=$(iteration_us off 1 fattree "$name" --iterations 8)
    [ -n "$one" ] || { echo "solver.sh: one rank failed: $(head -n 3 "$work/err")" >&2; exit 1; }
    for n in "$@"; do
        run_scheme "$name" "$n" CONV off
        run_scheme "$name" "$n" rerouted auto
        run_scheme "$name" "$n" EMB auto --form reorganised
        run_scheme "$name" "$n" EMB-KLF auto --form reorganised --map klf
        run_scheme "$name" "$n" EMB-KLR auto --form reorganised --map klr
    done
done
exit $failed
