#!/bin/sh
# The tables 6.2, 6.3 and 6.4 of the message sharing thesis ([Duymus21]) from pattern files, as
# Markdown: its figures beside ours, its baseline and the search for few messages beside them, and
# what a rank sends and receives when the plans are executed.
#
#   bench/table62.sh BUILDDIR [-b BUDGET_MS] [PATTERN...]
#
# BUILDDIR is where make ran. Every plan is checked by carpool plan. A pattern belongs to the row of
# the thesis that its file is named after (standin_NAME.512.txt.gz). Without patterns, three of 512
# ranks are made, for which the thesis has no figures.
set -u
usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 1 ] || usage
build=$1
shift
budget=500
while getopts b: option; do
    case $option in
        b) budget=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ -x "$build/cli/carpool" ] || {
    echo "table62.sh: no $build/cli/carpool; run make there" >&2
    exit 2
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

make_pattern() { # name, arguments of bench/generate
    name=$1
    shift
    "$build/bench/generate" "$@" -o "$work/$name.mtx" >&2 &&
        "$build/bench/spmv" --pattern "$work/$name.txt" --parts 512 "$work/$name.mtx" >&2
}
if [ $# -eq 0 ]; then
    make_pattern powerlaw powerlaw --rows 65536 --degree 12 &&
        make_pattern rmat rmat --scale 15 --edges-per-vertex 8 &&
        make_pattern fe fe --nodes-per-side 24 || exit 1
    set -- "$work/powerlaw.txt" "$work/rmat.txt" "$work/fe.txt"
fi

# Name, averages (initial, I, II), largest (initial, I, II), overhead: tables 6.2 and 6.4.
cat >"$work/thesis" <<'TABLE'
cbuckle 7.43 7.36 7.6 62 41 8 0.02
msc10848 16.95 16.62 17.05 67 34 18 0
fe_rotor 12.68 12.32 12.75 41 23 14 0
sparsine 76.21 56.87 57.01 223 80 58 0.24
coAuthorsDBLP 175.02 48.65 48.89 288 216 50 9.56
net125 106.44 52.01 52.03 209 123 53 1.79
nd3k 59.15 24.28 24.88 107 47 26 0.9
GaAsH6 75.96 25.66 26.18 227 77 27 0.84
pkustk04 18.52 17.4 17.87 101 51 19 0
gupta2 154.37 31.08 31.73 276 132 33 3.47
TSOPF_FS_b300_c2 140.93 74.29 74.31 497 249 124 0.01
pattern1 70.41 7.76 8.06 472 61 9 3.61
SiO2 156.86 23.92 25.4 298 147 26 1.12
human_gene_2 393.25 30.48 30.66 511 256 114 1.27
coPapersCiteseer 102.99 46.83 47.1 226 131 48 6.15
TABLE

strategies=direct,share:1,share:stay,share,vpt:2,balance:hops=2
for pattern in "$@"; do
    name=$(basename "$pattern" .gz)
    name=${name%.txt}
    "$build/cli/carpool" plan "$pattern" --size-limit none --no-lanes --strategy $strategies --budget "$budget" \
        --format tsv >"$work/plans" || exit 1
    sed "1d;s/^/${name%.512}\t/" "$work/plans" >>"$work/all"
done

awk -v budget="$budget" '
    function geometric(key) { return count[key] ? exp(logs[key] / count[key]) : 0 }
    function add(key, x) { if (x > 0) { logs[key] += log(x); count[key]++ } }
    function reduction(now, before) {
        return before > 0 ? sprintf("%+.0f%%", 100 * (now / before - 1)) : "none"
    }
    function pair(key) { return sprintf("%.2f, %d", set_avg[key], set_max[key]) }
    function executed(key) { return sprintf("%d / %d", sends[key], recvs[key]) }
    function of_thesis(p, column) {
        return p in has_row ? row[p, column] ", " row[p, column + 3] : ""
    }
    function print_mean(label, strategy, thesis_avg, thesis_max) {
        printf "| %s | %s | %s | %.1f | %s | %.1f | %.1f |\n", label, thesis_avg,
            thesis_max == "" ? "" : thesis_max " (" reduction(thesis_max, 187.6) ")",
            geometric("avg" strategy), sprintf("%.1f (%s)", geometric("max" strategy),
                reduction(geometric("max" strategy), geometric("maxdirect"))),
            geometric("sends" strategy), geometric("recvs" strategy)
    }
    FILENAME ~ /thesis$/ {
        for (k = 2; k <= 8; k++) row[$1, k] = $k
        has_thesis[$1] = 1
        next
    }
    {
        p = $1
        if (!(p in seen)) { seen[p] = 1; order[++n] = p }
        plain = p
        sub(/^(standin|recon)_/, "", plain)
        if (plain in has_thesis) {
            has_row[p] = 1
            for (k = 2; k <= 8; k++) row[p, k] = row[plain, k]
        }
        k = p SUBSEP $2
        sends[k] = $4; recvs[k] = $6; hops[k] = $9; set_max[k] = $13; set_avg[k] = $14
        add("avg" $2, $14); add("max" $2, $13); add("sends" $2, $4); add("recvs" $2, $6)
    }
    END {
        print "Table 6.2, send sets of a rank, average and largest; Phase II where received entries stay"
        print "(share:stay) and where they are handed on (share):"
        print ""
        print "| pattern | thesis: initial | here | thesis: Phase I | here | thesis: Phase II | stay | handed on |"
        print "|---|---|---|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            p = order[i]
            printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", p, of_thesis(p, 2),
                pair(p SUBSEP "direct"), of_thesis(p, 3), pair(p SUBSEP "share:1"), of_thesis(p, 4),
                pair(p SUBSEP "share:stay"), pair(p SUBSEP "share")
        }
        print ""
        print "As executed, combined messages that the busiest rank sends / receives:"
        print ""
        print "| pattern | initial | Phase I | stay | handed on | vpt:2 | balance:hops=2, " budget " ms |"
        print "|---|---|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            p = order[i]
            printf "| %s | %s | %s | %s | %s | %s | %s |\n", p, executed(p SUBSEP "direct"),
                executed(p SUBSEP "share:1"), executed(p SUBSEP "share:stay"),
                executed(p SUBSEP "share"), executed(p SUBSEP "vpt:2"),
                executed(p SUBSEP "balance:hops=2")
        }
        print ""
        print "Table 6.3, geometric means: average and largest send set (reduction of the initial), and"
        print "what the busiest rank sends and receives as executed:"
        print ""
        print "| | thesis: average | largest | here: average | largest | sends | receives |"
        print "|---|---|---|---|---|---|---|"
        print_mean("initial", "direct", 65.7, 187.6)
        print_mean("Phase I", "share:1", 25.7, "87.0")
        print_mean("Phase II, stay", "share:stay", "", "")
        print_mean("Phase II, handed on", "share", 26.3, 30.8)
        print_mean("baseline: store and forward, vpt:2", "vpt:2", "28.0", 41.6)
        print_mean("balance:hops=2", "balance:hops=2", "", "")
        print ""
        print "Table 6.4, messages that only carry what Phase I moved, on average, beside the average"
        print "after Phase I:"
        print ""
        print "| pattern | thesis: average | overhead | here: average | overhead |"
        print "|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            p = order[i]
            k = p SUBSEP "share:1"
            # Each message that moved makes one hop more. It is in no send set of its own any more.
            overhead = set_avg[k] - set_avg[p SUBSEP "direct"] * (2 - hops[k])
            printf "| %s | %s | %s | %.2f | %.2f |\n", p, p in has_row ? row[p, 3] : "",
                p in has_row ? row[p, 8] : "", set_avg[k], overhead < 0 ? 0 : overhead
        }
    }' FS=' ' "$work/thesis" FS='\t' "$work/all"
