#!/bin/sh
# Whole programs on a simulated cluster, without rerouting and with: part `programs` of record.sh.
#
#   sh bench/programs.sh BUILDDIR OUT.tsv [RANKS...]
#
# Every program of the list below runs twice, in mode off and in mode auto, on an EDR fat tree of 32
# ranks a node, with each of the numbers of ranks (default 128). Writes a line for both: the time of
# an exchange (halo, spmv) or of an iteration (cg, bfs) after learning, the messages of an exchange
# that the shim's report names, and by which strategy. The same to the digit each time, with the same
# METIS. Exits with 1 when a run failed, the shim was not active, or results differ.
set -u
[ $# -ge 2 ] && [ -d "$1" ] || { sed -n '4p' "$0" | cut -c 5- >&2; exit 2; }
bench=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
out=$2
shift 2
[ $# -gt 0 ] || set -- 128
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

"$build/bench/generate" fe --nodes-per-side 29 >"$work/fe.mtx" &&
    "$build/bench/generate" rgg --rows 8192 --degree 60 >"$work/rgg.mtx" &&
    "$build/bench/generate" powerlaw --rows 2048 --degree 6 >"$work/powerlaw.mtx" || exit 1
cat >"$work/list" <<'LIST'
halo --dims 2 --warmup 12 --iterations 10
halo --dims 2 --corners --warmup 12 --iterations 10
halo --warmup 12 --iterations 10
halo --corners --warmup 12 --iterations 10
spmv --form row --partition metis --warmup 60 --iterations 10 fe.mtx
spmv --form row --warmup 60 --iterations 10 powerlaw.mtx
cg --partition metis --warmup 33 --iterations 60 fe.mtx
cg --form reorganised --partition metis --warmup 33 --iterations 60 fe.mtx
bfs --warmup 4 --roots 4 rgg.mtx
bfs --warmup 4 --roots 4 powerlaw.mtx
LIST

run() { # mode, ranks, program, arguments...
    mode=$1
    ranks=$2
    program=$3
    shift 3
    (cd "$work" && CARPOOL_MODE=$mode CARPOOL_REPORT=$work/$mode.json nice \
        sh "$bench/sim/simulate.sh" -x "$program" "$build" "$ranks" "$bench/sim/edr.machine" \
        fattree --json "$@" >"$work/$mode.out" 2>"$work/$mode.err")
}
value() { # names, mode: the first that there is
    tr -d '{}",' <"$work/$2.out" | tr ' ' '\n' | awk -v names="$1" '
        found { print; exit } index(" " names " ", " " $0 " ") { found = 1 }'
}
reported() { # name: of point-to-point exchanges or neighborhood collectives, whichever was planned
    awk -v name="\"$1\":" '$1 == name { gsub(/[",]/, "", $2); if (!best || $2 + 0 > best + 0) best = $2 }
        END { print best == "" ? "-" : best }' "$work/auto.json"
}

printf 'program\targuments\tranks\tdirect_us\tus\tspeedup\tplanned\tstrategy\n' >"$out" || exit 1
for ranks in "$@"; do
    while read -r program arguments; do
        # shellcheck disable=SC2086
        run off "$ranks" "$program" $arguments </dev/null &
        off=$!
        # shellcheck disable=SC2086
        if run auto "$ranks" "$program" $arguments </dev/null && wait $off && [ -s "$work/auto.json" ] &&
            [ "$(value 'checksum: residual:' off)" = "$(value 'checksum: residual:' auto)" ]; then
            strategy=$(awk '$1 == "\"strategy\":" && $2 !~ /none/ { gsub(/[",]/, "", $2); print $2; exit }
                ' "$work/auto.json")
            planned=$(reported calls_planned)
            [ "$planned" != 0 ] || strategy=
            printf '%s\t%s\t%s\t%s\t%s\n' "$program" "$arguments" "$ranks" \
                "$(value 'time_us: time_median_us:' off)" "$(value 'time_us: time_median_us:' auto)" |
                awk -v planned="$planned" -v strategy="${strategy:-direct}" '
                    BEGIN { FS = OFS = "\t" }
                    { print $0, sprintf("%.3f", $4 / $5), planned, strategy }' >>"$out"
        else
            echo "programs.sh: failed, other results, or the shim was not active: $program $arguments, $ranks ranks" >&2
            tail -n 5 "$work"/*.err >&2
            failed=1
        fi
        wait
        rm -f "$work"/*.json "$work"/*.out "$work"/*.err
    done <"$work/list"
done
exit $failed
