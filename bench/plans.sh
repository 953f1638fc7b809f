#!/bin/sh
# Tables of plans for pattern files, as Markdown: the counts of searching; the modelled times.
# What the thesis's tables show makes table62.sh.
#
#   bench/plans.sh BUILDDIR [-b BUDGET_MS] PATTERN...
#
# BUILDDIR is where make ran. Every plan is checked by carpool plan. Irregular (marked *): the
# busiest rank sends more than three times the average.
set -u
usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
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
[ $# -ge 1 ] || usage
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

for pattern in "$@"; do
    name=$(basename "$pattern" .gz)
    "$build/cli/carpool" plan "$pattern" --size-limit none --strategy all --budget "$budget" --format tsv \
        >"$work/plans" || exit 1
    sed "s/^/${name%.txt}\t/" "$work/plans" >>"$work/all"
done
cut -f 1 "$work/all" | uniq >"$work/names"

table() { # awk program
    awk -F '\t' '
        NR == FNR { order[++n] = $1; next }
        $2 == "strategy" { next }
        {
            k = $1 SUBSEP $2
            max_of[k] = $4 > $6 ? $4 : $6
            set_max[k] = $13; set_avg[k] = $14; us[k] = $11; ms[k] = $12
            if ($2 ~ /^vpt:[0-9]+$/ && (!($1 in vpt) || $11 < vpt[$1])) vpt[$1] = $11
            if ($2 !~ /^(auto|balance.*)$/ && (!($1 in other) || $11 < other[$1])) {
                other[$1] = $11; by[$1] = $2
            }
        }
        function mean_begin() { count = 0; delete logs }
        function mean_add(j, x) { logs[j] += log(x) }
        function mean(j) { return exp(logs[j] / count) }
        END { '"$1"' }' "$work/names" "$work/all"
}

echo "Largest of the busiest ranks' sends and receives, budget $budget ms:"
echo
echo "| pattern | direct | vpt:2 | balance:hops=2 | vpt:3 | balance:hops=3 |"
echo "|---|---|---|---|---|---|"
table 'for (i = 1; i <= n; i++) { p = order[i]; if (!((p, "balance:hops=3") in us)) continue
    printf "| %s | %d | %d | %d | %d | %d |\n", p, max_of[p, "direct"], max_of[p, "vpt:2"],
        max_of[p, "balance:hops=2"], max_of[p, "vpt:3"], max_of[p, "balance:hops=3"]
    count++; mean_add(2, max_of[p, "balance:hops=2"] / max_of[p, "vpt:2"])
    mean_add(3, max_of[p, "balance:hops=3"] / max_of[p, "vpt:3"]) }
    if (count) printf "| geometric mean, of vpt | | | %.3f | | %.3f |\n", mean(2), mean(3)'
echo
echo "Modelled microseconds, budget $budget ms:"
echo
echo "| pattern | direct | best vpt | best other | | balance | auto | auto / best vpt | auto / best other | plan ms |"
echo "|---|---|---|---|---|---|---|---|---|---|"
table 'for (i = 1; i <= n; i++) { p = order[i]; if (!(p in vpt)) continue
    irregular = set_max[p, "direct"] > 3 * set_avg[p, "direct"]
    printf "| %s%s | %.1f | %.1f | %.1f | %s | %.2f | %.2f | %.2f | %.2f | %.0f |\n", p,
        irregular ? " *" : "", us[p, "direct"], vpt[p], other[p], by[p], us[p, "balance"],
        us[p, "auto"], us[p, "auto"] / vpt[p], us[p, "auto"] / other[p], ms[p, "auto"]
    count++; mean_add(1, us[p, "auto"] / vpt[p]); mean_add(2, us[p, "auto"] / other[p])
    if (irregular) { n_irregular++; irregular_sum += log(us[p, "auto"] / other[p]) } }
    if (count) printf "| geometric mean | | | | | | | %.3f | %.3f | |\n", mean(1), mean(2)
    if (n_irregular) printf "| of the irregular | | | | | | | | %.3f | |\n", exp(irregular_sum / n_irregular)'
