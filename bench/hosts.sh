#!/bin/sh
# Figures that are measured between hosts (results/cluster.md): whole programs on bench/cluster.sh, by TCP.
#
#   bench/hosts.sh BUILDDIR [RUNS [HOSTSxRANKS...]]      default: 5 runs; 2x16 4x16 4x32 8x32
#
# BUILDDIR is where configure and make ran. 1xRANKS is this machine as it is, without root. Default settings; runs with more
# ranks than processors have libyield.so. Programs that exchange in turns
# by MPI and by the library (spmv, neighbors) do so in one run, the others (cg, bfs, what sends messages) run in turns without the library and with it.
# Each has WARMUP seconds (default 12) of exchanges before those that count: Carpool spends a hundredth
# of a program's time on finding out. Writes Markdown: for each row the medians over the runs, of MPI and of Carpool, in
# microseconds, how many times as fast it became (median and quartiles), what the model had expected, and what carried.
# PROGRAMS, a regular expression, chooses rows. Needs root for several hosts.
set -u
if [ $# -lt 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
bench=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
runs=${2:-5}
if [ $# -gt 2 ]; then shift 2; else set -- 2x16 4x16 4x32 8x32; fi
warmup=${WARMUP:-12}
library=$build/shim/.libs/libcarpool.so
mpiexec=$(sed -n 's/^MPIEXEC = *//p' "$build/Makefile")
n_processors=$(getconf _NPROCESSORS_ONLN)
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

"$build/bench/generate" powerlaw --rows 2048 --degree 6 -o "$work/powerlaw.mtx" &&
    "$build/bench/generate" rgg --rows 8192 --degree 60 -o "$work/rgg.mtx" &&
    "$build/bench/generate" fe --nodes-per-side 24 -o "$work/fe.mtx" &&
    "$build/bench/generate" rmat --scale 11 --edges-per-vertex 40 -o "$work/rmat.mtx" || exit 1
cat >"$work/rows" <<'ROWS'
spmv --form row powerlaw.mtx
spmv --form row --partition metis rgg.mtx
spmv --form row --partition metis fe.mtx
spmv rmat.mtx
neighbors --bytes 8
neighbors --bytes 64
neighbors --bytes 4096
neighbors --neighbors 8 --bytes 64
neighbors --form messages --bytes 64
neighbors --form messages --neighbors 8 --bytes 64
neighbors --form messages --neighbors 4 --bytes 64
neighbors --form persistent --neighbors 8 --bytes 64
halo --dims 2 --corners
halo --corners
cg powerlaw.mtx
cg --form reorganised powerlaw.mtx
cg --halo neighbor powerlaw.mtx
bfs rgg.mtx
ROWS

launch() { # preload, program, arguments...: its JSON line into $work/out
    preload=$1 program=$2
    shift 2
    [ "$n_ranks" -le "$n_processors" ] || preload=$preload$build/bench/.libs/libyield.so:
    if [ "$n_hosts" -gt 1 ]; then
        preload=$preload$build/bench/.libs/libhosts.so
        by="sh $bench/cluster.sh -H $n_hosts --"
    else
        by=${mpiexec:-mpiexec.hydra}
    fi
    # shellcheck disable=SC2086
    (cd "$work" && timeout 240 $by -n "$n_ranks" \
        -genv LD_PRELOAD "${preload%:}" -genv CARPOOL_REPORT "$work/report.json" \
        "$build/bench/$program" --json "$@" >"$work/out" 2>"$work/err") ||
        { echo "$program $*: failed" >&2; sed 3q "$work/err" >&2; return 1; }
}
value() { # key: of the line
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/out"
}
time_of() { # the time that the program tells
    for key in time_median_us MPI_call_us time_us; do
        found=$(value $key)
        [ -z "$found" ] || break
    done
    echo "$found"
}
quartiles() { # file of numbers
    sort -n "$1" | awk '
        { a[NR] = $1 }
        END { printf "%.2f (%.2f..%.2f)", a[int((NR + 1) / 2)], a[int((NR + 3) / 4)], a[int((3 * NR + 3) / 4)] }'
}
middle() { # file of numbers
    sort -n "$1" | awk '{ a[NR] = $1 } END { printf a[int((NR + 1) / 2)] < 10 ? "%.2f" : "%.0f", a[int((NR + 1) / 2)] }'
}
# Of the exchange that was called most: how many times as fast its plan is by the model, and what carried it.
expected() {
    "$build/cli/carpool" report "$work/report.json" 2>/dev/null | awk '
        / calls[^:]*: / { calls = $0; sub(/ calls[^:]*: .*/, "", calls); sub(/.*, /, "", calls); head = $0; mpi = 0 }
        /^    by MPI/ { mpi = $NF }
        /^    by plan/ { if (calls + 0 > most) { most = calls + 0; gain = $NF > 0 ? mpi / $NF : 0; by = head } }
        END {
            if (!by || gain <= 0) { print "- | MPI"; exit }
            sub(/.* calls[^:]*: /, "", by)
            if (by ~ /^carried by/) { sub(/carried by /, "", by); sub(/ in .*/, "", by) } else by = "MPI"
            printf "%.1f | %s", gain, by
        }'
}

row() { # program, arguments...
    what="$*"
    rm -f "$work"/ratios "$work"/mpi "$work"/plan "$work"/report.json
    # so many exchanges beforehand that they take as long as is to be waited
    case $1 in
        neighbors) first='--blocks 3' ;;
        *) first='--warmup 3' ;;
    esac
    # shellcheck disable=SC2086
    launch "" "$@" $first || return
    count=$(echo "$(time_of) $warmup" | awk '{ n = int($2 * 1e6 / $1); print n < 10 ? 10 : n }')
    case $1 in
        neighbors) options="--learn $warmup" ;;
        cg) options="--warmup $count --solves $((count / 50 + 40))" ;;
        bfs) options="--warmup $((count / 60 + 1))" ;; # a search has some 60 levels
        halo) options="--warmup $count --iterations 200" ;;
        *) options="--compare --warmup $((count / 2)) --iterations 200" ;;
    esac
    i=0
    while [ $i -lt "$runs" ]; do
        i=$((i + 1))
        case $* in cg*|bfs*|halo*|*--form\ messages*|*--form\ persistent*)
            # shellcheck disable=SC2086
            launch "" "$@" $options || return
            mpi=$(time_of) ;;
        esac
        # shellcheck disable=SC2086
        launch "$library:" "$@" $options || return
        plan=$(time_of)
        case $* in
            spmv*) mpi=$(value library_median_us) ;;
            *--form\ messages*|*--form\ persistent*) ;;
            neighbors*) mpi=$(value PMPI_call_us) ;;
        esac
        echo "$mpi" >>"$work/mpi"
        echo "$plan" >>"$work/plan"
        echo "$mpi $plan" | awk '{ print $1 / $2 }' >>"$work/ratios"
    done
    echo "| $what | $n_hosts | $n_ranks | $(middle "$work/mpi") | $(middle "$work/plan") |" \
        "$(quartiles "$work/ratios") | $(expected) |"
}

echo "| program | hosts | ranks | MPI, us | Carpool, us | times as fast | by the model | carried by |"
echo "|---|---|---|---|---|---|---|---|"
for size in "$@"; do
    n_hosts=${size%x*} n_ranks=${size#*x}
    grep -E -e "${PROGRAMS:-.}" "$work/rows" >"$work/chosen"
    while read -r line; do
        # shellcheck disable=SC2086 # arguments
        row $line </dev/null
    done <"$work/chosen"
done
