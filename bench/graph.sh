#!/bin/sh
# The distributed array on simulated clusters: the benchmarks of Peters 2024 by bench/graph, weakly
# scaled; writes bench/results/graph.tsv (or FILE), a line a run, and prints it as tables.
#
#   graph.sh BUILDDIR [-o FILE] [RANKS...]          (default 64 256 1024 4096)
#
# Two runs at a time; with more than 256 ranks a method at a time, of fewer kinds of graphs. Runs that
# are in FILE already are not made again, so that an interrupted series goes on. A run may take
# GRAPH_SECONDS (default 3600).
# All methods of a benchmark must come to one checksum, those of boruvka and boruvka-owned to the
# same. Method auto: the median of 3 repetitions after 30, in which its trials are.
#
# A link carries so many messages at once, 512, with more than 1,024 ranks 64, and others after them:
# all at once take long to simulate.
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
[ $# -gt 0 ] || set -- 64 256 1024 4096
for ranks in "$@"; do
    case $ranks in *[!0-9]*|'') usage ;; esac
done
[ -x "$build/bench/sim/simulated_graph" ] || { echo "graph.sh: no $build/bench/sim/simulated_graph: SimGrid is missing" >&2; exit 1; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$(dirname "$file")"
columns='benchmark graph vertices edges elements ranks method taken time_median_us doubling_median_us messages writes writes_sent_by_stage writes_received_last reads reads_sent_by_stage reads_received_last checksum wrong'
[ -s "$file" ] || echo "$columns" | tr ' ' '\t' >"$file"

# 512 vertices and 8192 edges a process (neighborhood: 2048), a sixteenth of the paper's; overload
# asks for as many elements as the paper's
baseline=plain/none,plain/local
few=sort:equal:2/none,sort:equal:2,sort:equal:3,sort:hypercube,hash:equal:3
shapes=sort:equal,sort:hypercube/local,sort:increase,sort:decrease,sort:hourglass,sort:inverse-hourglass,sort:locality
variants=hash:plain,hash:equal:2,tree:equal:2,envelope-sort:equal:2,envelope-hash:equal:2,hash:hypercube

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

# One simulation with those of the methods that are not in FILE: graphs are made once for all.
run() { # ranks, graph (overload: elements) as FILE names it, methods, benchmark, arguments...
    ranks=$1 kind=$2 methods=$3 name=$4
    shift 4
    missing=
    for method in $(echo "$methods" | tr , ' '); do
        awk -F '\t' -v b="$name" -v g="$kind" -v r="$ranks" -v m="$method" \
            '$1 == b && ($2 == g || $5 == g) && $6 == r && $7 == m { found = 1 } END { exit !found }' "$file" ||
            missing=$missing,$method
    done
    [ -n "$missing" ] || return 0
    repetitions='--repetitions 1'
    [ "$methods" != auto ] || repetitions='--warmup 30 --repetitions 3'
    at_once=512
    [ "$ranks" -le 1024 ] || at_once=64
    out=$scratch/$name-$kind-$ranks-$(echo "$methods" | cksum | cut -d ' ' -f 1)
    # shellcheck disable=SC2086
    if ! SIMULATE_SECONDS=${GRAPH_SECONDS:-3600} \
        SIMULATE_CFG="--cfg=maxmin/concurrency-limit:$at_once" \
        sh "$here/sim/simulate.sh" -x simulated_graph "$build" "$ranks" \
        "$here/sim/edr.machine" fattree "$name" --json $repetitions --ranks-per-node 32 \
        --method "${missing#,}" "$@" >"$out" 2>"$out.err"; then
        echo "graph.sh: $name $kind with $ranks ranks failed:" >&2
        cat "$out.err" >&2
        : >"$scratch/failed"
    fi
    to_lines <"$out" >"$out.lines"
    cat "$out.lines" >>"$file" # at once: another run may write, too
}

# A benchmark on a graph with so many edges a rank.
on_graph() { # ranks, graph, methods, benchmark, edges
    options="--graph ${2%-scrambled} --vertices $((512 * $1)) --edges $(($5 * $1))"
    [ "$2" != rmat-scrambled ] || options="$options --scramble"
    # shellcheck disable=SC2086
    run "$1" "$2" "$3" "$4" $options
}

# So many elements of one rank are wanted by all.
overload() { # ranks, elements, methods
    run "$1" "$2" "$3" overload --elements "$2"
}

# Two at a time: the first of a pair in the background.
both() {
    eval "$1" &
    eval "$2"
    wait
}

small() { # ranks: all graphs and methods
    for kind in rmat rmat-scrambled rgg gnm; do
        many=$baseline,$few
        [ $kind != rmat ] || many=$many,$shapes,$variants
        both "on_graph $1 $kind $many boruvka 8192" \
            "on_graph $1 $kind $baseline,$few boruvka-owned 8192; on_graph $1 $kind $baseline,$few neighborhood 2048"
    done
    [ "$1" -gt 64 ] || on_graph "$1" gnm auto neighborhood 2048 # takes long with more
    both "on_graph $1 rmat auto boruvka 8192" \
        "on_graph $1 rmat auto neighborhood 2048; on_graph $1 rgg auto neighborhood 2048
         on_graph $1 rmat auto boruvka-owned 8192; on_graph $1 rgg auto boruvka-owned 8192
         overload $1 256 $baseline,$few,sort:hypercube/local; overload $1 256 auto
         overload $1 8192 sort:hypercube,sort:equal:3,sort:equal:2; overload $1 8192 auto"
}

# Each method of a list in a simulation of its own: each may take minutes, and is kept when it is there.
one_by_one() { # ranks, graph or elements, methods, benchmark, edges
    for method in $(echo "$3" | tr , ' '); do
        case $4 in
            overload) overload "$1" "$2" "$method" ;;
            *) on_graph "$1" "$2" "$method" "$4" "$5" ;;
        esac
    done
}

# What matters most comes first: the last ones were not seen to end.
large() { # ranks
    both "one_by_one $1 rmat plain/none,hash:equal:3,sort:equal:3,sort:equal:2,sort:hypercube boruvka-owned 8192
          one_by_one $1 rgg plain/none,hash:equal:3 boruvka 8192" \
        "one_by_one $1 256 plain/none,sort:hypercube,sort:equal:3,hash:equal:3,sort:equal:2 overload
         one_by_one $1 8192 sort:hypercube,sort:equal:3,sort:equal:2 overload
         one_by_one $1 rgg plain/none,hash:equal:3,sort:equal:3,sort:equal:2 neighborhood 2048
         one_by_one $1 rmat plain/none,hash:equal:3,sort:equal:3,sort:equal:2 neighborhood 2048
         one_by_one $1 rgg plain/none,hash:equal:3,sort:equal:3 boruvka-owned 8192
         one_by_one $1 gnm plain/none,sort:equal:2,sort:equal:3 neighborhood 2048
         one_by_one $1 rmat hash:equal:3,plain/none boruvka 8192"
}

huge() { # ranks
    both "one_by_one $1 rmat plain/none,hash:equal:3 boruvka-owned 8192" \
        "one_by_one $1 256 plain/none,sort:hypercube,sort:equal:3,sort:equal:2,sort:equal:6 overload
         one_by_one $1 8192 sort:hypercube overload
         one_by_one $1 rgg plain/none,hash:equal:3 neighborhood 2048
         one_by_one $1 rgg plain/none,hash:equal:3 boruvka-owned 8192"
}

for ranks in "$@"; do
    if [ "$ranks" -le 256 ]; then small "$ranks"; elif [ "$ranks" -le 1024 ]; then large "$ranks"; else huge "$ranks"; fi
done

# The times: a row a benchmark, graph and number of ranks, a column a method; the gain over plain/none,
# or where that was not run plain/local.
sort -t "$(printf '\t')" -k 1,1 -k 2,2 -k 6,6n "$file" | awk -F '\t' '$1 != "benchmark" {
        row = $1 " | " ($2 == "-" ? $5 " elements" : $2) " | " $6
        if (!(row in seen)) { seen[row] = 1; rows[++n_rows] = row }
        us[row, $7] = $9
        if ($7 !~ /^plain/ && (!(row in best) || $9 < best[row])) { best[row] = $9; by[row] = $7 ($7 == "auto" ? " (" $8 ")" : "") }
    }
    END {
        n = split("plain/none plain/local sort:equal:2/none sort:equal:2 sort:equal:3 sort:hypercube hash:equal:3 auto", method, " ")
        printf "| benchmark | graph | ranks |"
        for (m = 1; m <= n; m++) printf " %s |", method[m]
        printf " best | plain by the best |\n|---|---|---|"
        for (m = 1; m <= n + 2; m++) printf "---|"
        for (r = 1; r <= n_rows; r++) {
            row = rows[r]
            printf "\n| %s |", row
            for (m = 1; m <= n; m++) printf " %s |", (row, method[m]) in us ? sprintf("%d", us[row, method[m]] + 0.5) : ""
            plain = (row, "plain/none") in us ? us[row, "plain/none"] : us[row, "plain/local"]
            printf " %s | %s |", by[row], (plain && best[row] > 0) ? sprintf("%.1f", plain / best[row]) : ""
        }
        print ""
    }'

# overload's results depend on the repetition, and are known beforehand
failed=no
awk -F '\t' 'NR > 1 && $1 != "overload" {
        benchmark = $1
        sub(/-owned$/, "", benchmark)
        graph = benchmark " " $2 " " $3 " " $4
        if (graph in sum && sum[graph] != $18) { print "graph.sh: checksums differ: " graph; bad = 1 }
        sum[graph] = $18
    }
    $19 != 0 && NR > 1 { print "graph.sh: wrong results: " $0; bad = 1 }
    END { exit bad }' "$file" >&2 || failed=yes
[ $failed = no ] && [ ! -e "$scratch/failed" ]
