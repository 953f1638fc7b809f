#!/bin/sh
# The table "spmv on real ranks" of README.md, as Markdown: each matrix with 16, 32 and 64 ranks in both
# forms, first without the library (checksum), then with it, timed against MPI's own collective in
# the same run (spmv --compare).
#
#   bench/table.sh BUILDDIR [-m MODE] [-s STRATEGY] [-r "RANKS ..."] MATRIX.mtx[.gz]...
#
# BUILDDIR is where configure and make ran. Exits with 1 when a checksum differs.
set -u
usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
build=$1
shift
mode=auto
strategy=auto
ranks="16 32 64"
while getopts m:s:r: option; do
    case $option in
        m) mode=$OPTARG ;;
        s) strategy=$OPTARG ;;
        r) ranks=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
library=$build/shim/.libs/libcarpool.so
yield=$build/bench/.libs/libyield.so
mpiexec=$(sed -n 's/^MPIEXEC = *//p' "$build/Makefile")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

value() { # key, file: the first one
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | sed 1q
}

planned_sends() {
    awk '/"planned": \{/ { in_planned = 1 } in_planned && /"sends_max"/ { gsub(/[^0-9]/, ""); print; exit }' \
        "$work/report.json"
}

echo "| matrix | form | ranks | busiest rank sends | planned | strategy | MPI us | Carpool us | speed-up (quartiles) | checksum |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for matrix in "$@"; do
    for n in $ranks; do
        for form in column row; do
            "$mpiexec" -n "$n" -genv LD_PRELOAD "$yield" "$build/bench/spmv" --json --form $form \
                --partition metis --iterations 200 "$matrix" >"$work/plain.json" || failed=1
            "$mpiexec" -n "$n" -genv LD_PRELOAD "$library:$yield" -genv CARPOOL_MODE "$mode" \
                -genv CARPOOL_STRATEGY "$strategy" -genv CARPOOL_REPORT "$work/report.json" \
                "$build/bench/spmv" --json --compare --form $form --partition metis \
                --iterations 200 "$matrix" >"$work/ride.json" || failed=1
            chosen=$(value strategy "$work/report.json")
            name=${matrix##*/}
            verdict=same
            if [ "$(value checksum "$work/plain.json")" != "$(value checksum "$work/ride.json")" ]; then
                verdict=DIFFERS
                failed=1
            fi
            sends=$(value sends_max "$work/ride.json")
            printf '| %s | %s | %s | %s | %s | %s | %.0f | %.0f | %.2f (%.2f..%.2f) | %s |\n' \
                "${name%.mtx*}" $form "$n" "$sends" "$([ "$chosen" = none ] && echo "$sends" || planned_sends)" \
                "$([ "$chosen" = none ] && echo "left to MPI" || echo "$chosen")" \
                "$(value library_median_us "$work/ride.json")" "$(value time_median_us "$work/ride.json")" \
                "$(value speedup_median "$work/ride.json")" \
                "$(value speedup_lower_quartile "$work/ride.json")" \
                "$(value speedup_upper_quartile "$work/ride.json")" "$verdict"
        done
    done
done
exit $failed
