#!/bin/sh
# The distributed array on simulated clusters: the benchmarks of Peters 2024 by bench/graph, weakly
# scaled, and writes bench/results/graph.tsv (or FILE), a line a run.
#
#   graph.sh BUILDDIR [-o FILE] [RANKS...]          (default 64 256 512)
#
# Runs that are in FILE already are not made again, so that an interrupted series goes on. A run
# may take GRAPH_SECONDS (default 3000). All methods of a benchmark must come to one checksum.
# Method auto: the median of 41 repetitions, of which the first 21 at most are its trials.
#
# A rank that waits in MPI_Probe looks each simulated microsecond: more often is slow to simulate. It
# makes the grids' steps up to 12% longer, those of MPI_Alltoallv not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '5p' "$0" | cut -c 5- >&2; exit 2; }
[ $# -ge 1 ] || usage
build=$(cd "$1" && pwd) || exit 2
shift
file=$here/results/graph.tsv
if [ "${1:-}" = -o ]; then
    file=${2:-}
    [ -n "$file" ] || usage
    shift 2
fi
[ $# -gt 0 ] || set -- 64 256 512
for ranks in "$@"; do
    case $ranks in *[!0-9]*|'') usage ;; esac
done
[ -x "$build/bench/sim/.libs/simulated_graph" ] || { echo "graph.sh: no $build/bench/sim/simulated_graph: SimGrid is missing" >&2; exit 1; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$(dirname "$file")"
columns='benchmark graph vertices edges elements ranks method time_median_us messages writes writes_sent_by_stage writes_received_last reads reads_sent_by_stage reads_received_last checksum wrong'
[ -s "$file" ] || echo "$columns" | tr ' ' '\t' >"$file"

# 512 vertices and 8192 edges a process (neighborhood: 2048), a sixteenth of the paper's; what
# overload asks for is the paper's smaller case
baseline=plain/none,plain/local
grids=sort:equal:2,sort:equal:3,sort:equal,sort:hypercube
shapes=sort:equal:2/local,sort:hypercube/local,sort:increase,sort:decrease,sort:hourglass,sort:inverse-hourglass,sort:locality
variants=hash:equal:2,tree:equal:2,envelope-sort:equal:2,envelope-hash:equal:2,hash:hypercube

to_lines() { # JSON objects, one a line, the last perhaps cut off -> tab separated columns
    awk -v columns="$columns" '/^[{].*[}]$/ {
        n = split(columns, column, " ")
        line = ""
        for (i = 1; i <= n; i++) {
            value = "-"
            if (match($0, "\"" column[i] "\": (\"[^\"]*\"|[^,}]*)")) {
                value = substr($0, RSTART + length(column[i]) + 4, RLENGTH - length(column[i]) - 4)
                gsub(/"/, "", value)
            }
            line = line (i > 1 ? "\t" : "") value
        }
        print line
    }'
}

run() { # ranks, repetitions, methods, benchmark, arguments...
    ranks=$1 repetitions=$2 methods=$3 name=$4
    shift 4
    # several runs of one list: simulations are made in one go, and graphs once
    missing=
    for method in $(echo "$methods" | tr , ' '); do
        awk -F '\t' -v b="$name" -v g="$kind" -v r="$ranks" -v m="$method" \
            '$1 == b && $2 == g && $6 == r && $7 == m { found = 1 } END { exit !found }' "$file" ||
            missing=$missing,$method
    done
    [ -n "$missing" ] || return 0
    if ! SIMULATE_SECONDS=${GRAPH_SECONDS:-3000} \
        SIMULATE_CFG="--cfg=smpi/alltoallv:mpich --cfg=smpi/iprobe:1e-6" sh "$here/sim/simulate.sh" -x simulated_graph "$build" "$ranks" \
        "$here/sim/edr.machine" fattree "$name" --json --repetitions "$repetitions" --ranks-per-node 32 \
        --method "${missing#,}" "$@" >"$scratch/out" 2>"$scratch/err"; then
        echo "graph.sh: $name $kind with $ranks ranks failed:" >&2
        cat "$scratch/err" >&2
        failed=yes
    fi
    to_lines <"$scratch/out" >>"$file"
}

failed=no
for ranks in "$@"; do
    for kind in - rmat rmat-scrambled rgg gnm; do
        few=$baseline,$grids
        many=$few,$shapes
        [ $kind != rmat ] || many=$many,$variants
        if [ $kind = - ]; then
            run "$ranks" 1 "$many" overload
            run "$ranks" 41 auto overload
            continue
        fi
        size="--graph ${kind%-scrambled} --vertices $((512 * ranks))"
        [ $kind != rmat-scrambled ] || size="$size --scramble"
        size="$size --edges"
        # shellcheck disable=SC2086
        run "$ranks" 1 "$many" boruvka $size $((8192 * ranks))
        # shellcheck disable=SC2086
        run "$ranks" 1 "$few" neighborhood $size $((2048 * ranks))
        # shellcheck disable=SC2086
        run "$ranks" 41 auto neighborhood $size $((2048 * ranks))
    done
done
# overload's results depend on the repetition, and are known beforehand
awk -F '\t' 'NR > 1 && $1 != "overload" {
        graph = $1 " " $2 " " $3 " " $4
        if (graph in sum && sum[graph] != $16) { print "graph.sh: checksums differ: " graph; bad = 1 }
        sum[graph] = $16
    }
    $17 != 0 && NR > 1 { print "graph.sh: wrong results: " $0; bad = 1 }
    END { exit bad }' "$file" >&2 || failed=yes
[ $failed = no ]
