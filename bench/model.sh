#!/bin/sh
# How well the chain model, which decides between plans, foretells simulations: time simulated (the
# runs of single strategies with 64 bytes a message in results/record.tsv) by time modelled, for
# each strategy and for single patterns far off.
#
#   bench/model.sh BUILDDIR PATTERN...
#
# PATTERN is one of those given to record.sh. Prints Markdown.
set -u
[ $# -ge 2 ] && [ -d "$1" ] || { sed -n '6p' "$0" | cut -c 5- >&2; exit 2; }
bench=$(cd "$(dirname "$0")" && pwd)
carpool=$1/cli/carpool
shift
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
strategies=direct,share,node,vpt:2,vpt:3,grid:far:equal,node-grid:0:1:2

for pattern in "$@"; do
    name=$(basename "$pattern" .gz)
    name=${name%.txt}
    case $pattern in *.gz) gzip -dc "$pattern" ;; *) cat "$pattern" ;; esac |
        awk 'NF == 3 { $3 = 1 } { print }' >"$work/pattern.txt" # all of one size
    "$carpool" plan "$work/pattern.txt" --size-limit none --strategy $strategies --unit 64 --format tsv --no-lanes \
        --machine "$bench/sim/edr.machine" >"$work/plans" || exit 1
    awk -v name="$name" 'BEGIN { FS = OFS = "\t" }
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "modelled_us") column = i; next }
        { print name, $1, $column }' "$work/plans"
done >"$work/modelled"

awk 'BEGIN { FS = "\t" }
    FNR == NR {
        if ($1 == "strategies" && $6 == 64 && $4 == "edr" && $7 != "auto") {
            us[$2 "." $3, $7] = $10
            us[$2 "." $3, "direct"] = $9
        }
        next
    }
    ($1, $2) in us && $3 > 0 {
        off = log(us[$1, $2] / $3)
        if (!($2 in n)) order[++k] = $2
        n[$2]++; sum[$2] += off; square[$2] += off * off
        if (!($2 in least) || off < least[$2]) { least[$2] = off; at_least[$2] = $1 }
        if (!($2 in most) || off > most[$2]) { most[$2] = off; at_most[$2] = $1 }
    }
    END {
        print "| strategy | patterns | simulated by modelled, mean | deviation | least | most |"
        print "|---|---|---|---|---|---|"
        for (i = 1; i <= k; i++) {
            s = order[i]
            mean = sum[s] / n[s]
            spread = square[s] / n[s] - mean * mean
            printf "| %s | %d | %.3f | %.1f%% | %.2f (%s) | %.2f (%s) |\n", s, n[s], exp(mean),
                   100 * sqrt(spread > 0 ? spread : 0), exp(least[s]), at_least[s], exp(most[s]), at_most[s]
        }
    }' "$bench/results/record.tsv" "$work/modelled"
