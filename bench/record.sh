#!/bin/sh
# The figures of record: patterns on clusters simulated by SimGrid, with the shim's own sources.
#
#   sh bench/record.sh BUILDDIR [-o DIR] [-j JOBS] [-p PART]... [PATTERN...]
#
# BUILDDIR is where make ran, configured where SimGrid is. Patterns are files of `carpool plan`; the
# project's own families are always among them. Writes DIR (default bench/results beside this
# script): record.tsv, a line a run, the same to the digit in every run of this script, and
# pictures. PART is one or several of these (default: all but huge, over an hour on two cores; huge
# has a table of its own and leaves the others' as they are):
#
#   strategies   512 ranks, EDR fat tree, 64 bytes: auto and the strategies of the list below
#   sizes        the same with auto, 8 bytes to 64 KiB, the own families at 128 ranks; this, volumes
#                and platforms without large patterns
#   volumes      the same with auto, messages as long as the given patterns' volumes: 8, 64 and 512
#                bytes a unit
#   platforms    the same with auto at 64 bytes: torus, dragonfly, EDR with overheads halved and
#                doubled and with a receive that costs half of a send
#   scale        the own families at 128 and 2,048 ranks, EDR, 64 bytes, auto
#   huge         DIR/huge.tsv: patterns of more than 60,000 messages, with auto and two strategies,
#                and the own families at 4,096 ranks, with auto, which decides there by the model and
#                not by measuring. Up to five minutes a run
#   programs     halo, spmv, cg and bfs, 128 ranks (programs.sh): DIR/programs.tsv
#
# A pattern that is not for 512 ranks is run in part strategies or huge, at its own size. Exits with 1
# when a run failed, a message came wrong, or the shim was not active in one.
set -u
usage() {
    sed -n '4p' "$0" | cut -c 5- >&2
    exit 2
}
[ $# -ge 1 ] && [ -d "$1" ] || usage
bench=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
out=$bench/results
jobs=2
parts=
while getopts o:j:p: option; do
    case $option in
        o) out=$OPTARG ;;
        j) jobs=$OPTARG ;;
        p) parts="$parts $OPTARG" ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ -x "$build/bench/sim/exchange" ] || {
    echo "record.sh: $build has no bench/sim/exchange: install Debian's libsimgrid-dev and g++, configure, make" >&2
    exit 1
}
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
LC_ALL=C
export LC_ALL
mkdir -p "$out" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
SIMULATE_SECONDS=${SIMULATE_SECONDS:-3600}

strategies="auto share vpt:2 vpt:3 vpt:9 grid:far:equal node node-grid:0:1:2 balance"
huge_messages=60000 # more: part huge, and with 4,096 ranks or more
huge_strategies="auto vpt:3 node-grid:0:1:2"
# SimGrid shares a link out anew among all its messages whenever one begins or ends. Where many ranks
# send to one node at a time these are thousands, and the work grows with their square. So a link
# carries this many at a time, and others wait in the order of their coming. And collectives outside
# of what is measured are not linear.
SIMULATE_CFG="--cfg=maxmin/concurrency-limit:512 --cfg=smpi/reduce:binomial \
--cfg=smpi/scatter:ompi_binomial ${SIMULATE_CFG:-}"
export SIMULATE_CFG
most_messages=20000 # of a pattern in parts sizes, volumes and platforms
size_limit=4096     # CARPOOL_SIZE_LIMIT's default
export bench build work SIMULATE_SECONDS

wants() {
    case " ${parts:-strategies sizes volumes platforms scale programs} " in *" $1 "*) true ;; *) false ;; esac
}

# ---- patterns: the project's own families, with ranks as rows, and those given
own() { # ranks
    scale=$(awk -v n="$1" 'BEGIN { while (2 ^ k < n) k++; print k }')
    "$build/bench/generate" rmat --scale "$scale" --edges-per-vertex 16 >"$work/rmat.$1.mtx" &&
        "$build/bench/generate" rgg --rows "$1" --degree 20 >"$work/rgg.$1.mtx" &&
        "$build/bench/generate" gnm --rows "$1" --degree 20 >"$work/gnm.$1.mtx" &&
        "$build/bench/generate" powerlaw --rows "$1" --degree 20 >"$work/powerlaw.$1.mtx" ||
        exit 1
}
for ranks in 128 512 2048 4096; do own $ranks; done

ranks_of() { # the first number of a text file, or of a Matrix Market file's sizes
    case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac | awk '!/^[#%]/ { print $1; exit }'
}
messages_of() {
    case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac | grep -vc '^[#%]'
}

# ---- machines that are others with something changed
vary() { # name, keys, factor
    awk -v keys="$2" -v f="$3" '$1 ~ keys { $2 *= f } { print }' "$bench/sim/edr.machine" \
        >"$work/$1.machine"
}
for name in edr gemini aries; do cp "$bench/sim/$name.machine" "$work/" || exit 1; done
vary edr-half '(send|recv)_us$' 0.5
vary edr-double '(send|recv)_us$' 2
vary edr-light 'recv_us$' 0.5

# ---- the list of runs: messages x exchanges, calls to measure, part, pattern, ranks, machine,
# topology, bytes (uN: N for each unit of the volume), strategy
add() {
    trial=1
    exchanges=16
    [ "$3" -lt 4096 ] || trial=0        # the model alone decides
    case $6 in
        u*) ;;
        *) [ "$6" -le $size_limit ] || trial=0 ;; # nothing is planned
    esac
    [ "$7$trial" = auto1 ] || exchanges=3
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' $((messages * exchanges)) $trial "$@" >>"$work/list"
}
add_sizes() {
    wants sizes || return 0
    for bytes in 8 512 4096 65536; do
        add sizes "$pattern" "$ranks" edr fattree $bytes auto
    done
}
: >"$work/list"
for pattern in "$work"/*.512.mtx "$@"; do
    ranks=$(ranks_of "$pattern")
    [ "${ranks:-0}" -ge 1 ] || { echo "record.sh: $pattern is no pattern" >&2; exit 1; }
    messages=$(messages_of "$pattern")
    part=strategies
    some=$strategies
    if [ "$messages" -gt $huge_messages ] || [ "$ranks" -ge 4096 ]; then
        part=huge
        some=$huge_strategies
    fi
    if wants $part; then
        for strategy in $some; do
            add $part "$pattern" "$ranks" edr fattree 64 "$strategy"
        done
    fi
    [ "$ranks" -eq 512 ] && [ "$messages" -le $most_messages ] || continue
    case $pattern in
        "$work"/*) ;;
        *)
            add_sizes
            if wants volumes; then
                for bytes in u8 u64 u512; do
                    add volumes "$pattern" "$ranks" edr fattree $bytes auto
                done
            fi
            ;;
    esac
    if wants platforms; then
        add platforms "$pattern" "$ranks" gemini torus 64 auto
        add platforms "$pattern" "$ranks" aries dragonfly 64 auto
        for machine in edr-half edr-double edr-light; do
            add platforms "$pattern" "$ranks" $machine fattree 64 auto
        done
    fi
done
for ranks in 128 2048 4096; do
    part=scale
    [ $ranks -lt 4096 ] || part=huge
    for pattern in "$work"/*.$ranks.mtx; do
        messages=$(messages_of "$pattern")
        [ $ranks -gt 128 ] || add_sizes
        if wants $part; then add $part "$pattern" "$ranks" edr fattree 64 auto; fi
    done
done

# ---- one run; a strategy is forced, auto chooses by measurement and times direct, too
cat >"$work/run.sh" <<'RUN'
set -u
number=$1 trial=$2 part=$3 pattern=$4 ranks=$5 machine=$6 topology=$7 bytes=$8 strategy=$9
report=$work/$number.json
warmup=2 # learning, and a call that tells all lengths
mode=force
only=--carried
if [ "$strategy" = auto ]; then
    [ "$trial" = 0 ] || warmup=14 # learning, and two rounds of MPI and two plans, two calls each
    mode=auto
    only=
fi
case $bytes in
    u*) size="--unit ${bytes#u}" ;;
    *) size="--bytes $bytes" ;;
esac
CARPOOL_MODE=$mode CARPOOL_STRATEGY=$strategy CARPOOL_TRIAL=$trial CARPOOL_REPORT=$report \
    sh "$bench/sim/simulate.sh" "$build" "$ranks" "$work/$machine.machine" "$topology" \
    --json $only $size --warmup $warmup "$pattern" >"$work/$number.out" 2>"$work/$number.err"
code=$?
name=$(basename "$pattern" .gz)
name=${name%.txt}
name=${name%.mtx}
row=$(awk -v head="$part	${name%.*}	$ranks	$machine	$topology	$bytes	$strategy" \
    -v expected=$((warmup + 1)) '
    FNR == NR { # the report: what the shim saw and did
        if ($0 ~ /^   "calls": /) calls = $2 + 0
        if ($0 ~ /^   "strategy": /) { chosen = $2; gsub(/[",]/, "", chosen) }
        if ($0 ~ /^   "plan_ms": /) plan_ms = $2 + 0
        if ($0 ~ /^   "forwarded_bytes": /) forwarded = $2 + 0
        next
    }
    {
        gsub(/[{}",]/, "")
        for (i = 1; i < NF; i += 2) { key = $i; sub(/:$/, "", key); v[key] = $(i + 1) }
    }
    END {
        if (calls != expected || v["wrong"] != "0" || v["carried_time_us"] + 0 <= 0) exit 1
        us = v["direct_time_us"]; by = v["carried_time_us"]
        printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\n", head, chosen,
               us, by, v["direct_busiest_sends"], v["direct_busiest_receives"],
               v["carried_busiest_sends"], v["carried_busiest_receives"], v["direct_messages"],
               v["carried_messages"], v["direct_bytes"], v["carried_bytes"], plan_ms
    }' "$report" "$work/$number.out" 2>/dev/null) || code=1
if [ $code -ne 0 ]; then
    echo "record.sh: failed, or the shim was not active: $(basename "$pattern") $ranks $machine $topology $bytes $strategy" >&2
    tail -n 5 "$work/$number.err" >&2
    exit 1
fi
echo "$row" >"$work/$number.row"
rm -f "$report" "$work/$number.out"
RUN

failed_programs=0
if wants programs; then
    sh "$bench/programs.sh" "$build" "$out/programs.tsv" || failed_programs=1
    [ -s "$work/list" ] || exit $failed_programs
fi
n_runs=$(wc -l <"$work/list")
echo "$n_runs runs, $jobs at a time"
start=$(date +%s)
# the longest first, so that no job is left alone with one at the end
awk '{ printf "%05d\t%s\n", NR, $0 }' "$work/list" | sort -k 2,2nr -k 1,1 | cut -f 1,3- |
    tr '\t\n' '\0\0' |
    xargs -0 -n 9 -P "$jobs" nice sh "$work/run.sh"
failed=$?
table() { # the rows whose part is huge (1), or is not (0)
    printf 'part\tpattern\tranks\tmachine\ttopology\tbytes\tstrategy\tchosen\tdirect_us\tus\tspeedup'
    printf '\tdirect_sends\tdirect_receives\tsends\treceives\tdirect_messages\tmessages'
    printf '\tdirect_bytes\tbytes_sent\tplan_ms\tpays_after\n'
    # the direct figures of a forced strategy are those of the run with auto, which comes before it
    cat "$work"/*.row | awk -v huge="$1" '
        BEGIN { FS = OFS = "\t" }
        ($1 == "huge") != huge { next }
        $7 == "auto" { for (i = 9; i <= 17; i++) direct[i] = $i; of = $2 FS $3 }
        $7 != "auto" && of != $2 FS $3 { next }
        $7 != "auto" { $9 = direct[9]; $11 = direct[11]; $12 = direct[12]; $15 = direct[15]; $17 = direct[17] }
        {
            pays = $9 > $10 ? sprintf("%.0f", $19 * 1000 / ($9 - $10)) : "never"
            print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, sprintf("%.3f", $9 / $10), $11, $12, $13, $14, $15, $16, $17, $18, $19, pays
        }'
}
if grep -q '	huge	' "$work/list"; then table 1 >"$out/huge.tsv"; fi
if grep -qv '	huge	' "$work/list"; then
    table 0 >"$out/record.tsv"
    for part in strategies sizes platforms scale; do
        awk -f "$bench/record_chart.awk" -v part=$part "$out/record.tsv" >"$out/$part.svg" || exit 1
    done
    awk -f "$bench/record_summary.awk" "$out/record.tsv" >"$out/summary.md" || exit 1
fi
echo "$(cat "$work"/*.row | wc -l) of $n_runs runs in $out, $(($(date +%s) - start)) s"
[ $failed -eq 0 ] && [ $failed_programs -eq 0 ]
