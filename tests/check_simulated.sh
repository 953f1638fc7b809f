#!/bin/sh
# Simulated clusters (bench/sim): the shim's sources run under SimGrid's MPI, are active there, deliver
# every message, and two runs give the same figures to the digit.
#
#   check_simulated.sh      with top_srcdir and top_builddir in the environment
#
# Skipped where SimGrid is missing. Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
[ -x "$top_builddir/bench/sim/exchange" ] || skip_all "no SimGrid, no bench/sim/exchange"
command -v smpirun >/dev/null 2>&1 || skip_all "no smpirun"
clean_environment
make_scratch
cd "$tmp" || exit 2
"$top_builddir/bench/generate" powerlaw --rows 64 --degree 16 >m.mtx || skip_all "no pattern"
sed 's/^ranks_per_node .*/ranks_per_node 16/' "$top_srcdir/bench/sim/edr.machine" >edr.machine

# Far from what a run takes, some 10 s: the machine may do something else, too.
SIMULATE_SECONDS=1000
export SIMULATE_SECONDS

ran() { # description, exit code; whether a program ran to its end without an error
    check "$1" test "$2" -eq 0
    [ "$2" -ne 124 ] || say "it was stopped after $SIMULATE_SECONDS s: that is a limit of time, no wrong result"
}

run() { # file, topology, exchange's arguments...
    file=$1
    topology=$2
    shift 2
    CARPOOL_REPORT=$file.json sh "$top_srcdir/bench/sim/simulate.sh" \
        "$top_builddir" 64 edr.machine "$topology" --json "$@" m.mtx >"$file" 2>"$file.err"
}
value() { # name, file
    tr -d '{}",' <"$2" | tr ' ' '\n' | awk -v name="$1:" 'found { print; exit } $0 == name { found = 1 }'
}
planned() {
    sed -n 's/^   "calls_planned": \([0-9]*\),$/\1/p' "$1.json" | head -n 1
}

# A copy of the program for each rank: many copies' variables of threads find no room (dlopen fails).
check "no variable of a thread is in a simulated program" \
    sh -c '! readelf -lW "$0" | grep -w TLS' "$top_builddir/bench/sim/exchange"
for topology in fattree torus dragonfly; do
    export CARPOOL_MODE=force CARPOOL_STRATEGY=vpt:2
    run one $topology --warmup 3
    ran "$topology: the program runs" $?
    check "$topology: no message came wrong" test "$(value wrong one)" = 0
    # of four calls the first is watched
    check "$topology: the shim carried all calls but the first" test "$(planned one)" = 3
    check "$topology: fewer messages were sent" \
        test "$(value carried_messages one)" -lt "$(value direct_messages one)"
    check "$topology: of the busiest rank, too" \
        test "$(value carried_busiest_sends one)" -lt "$(value direct_busiest_sends one)"
    run two $topology --warmup 3
    check "$topology: the same figures again" cmp one two
done

# A program with point-to-point messages, on a communicator of 26 neighbours a rank.
for mode in force off; do
    CARPOOL_MODE=$mode CARPOOL_REPORT=halo-$mode.json \
        sh "$top_srcdir/bench/sim/simulate.sh" -x halo "$top_builddir" 64 edr.machine fattree --json \
        --compare --corners --cells 2 --warmup 10 --iterations 5 >halo-$mode 2>halo-$mode.err
    ran "halo, $mode: the program runs" $?
done
check "halo: the cells are the same" test "$(value checksum halo-force)" = "$(value checksum halo-off)"
check "halo: the shim carried its messages" test "$(planned halo-force)" -gt 9
check "halo: faster than MPI beside it" \
    awk -v s="$(value speedup halo-force)" 'BEGIN { exit !(s > 1.5) }'
check "halo: MPI beside it as without" \
    test "$(value library_median_us halo-force)" = "$(value time_median_us halo-off)"

export CARPOOL_MODE=auto CARPOOL_STRATEGY=auto CARPOOL_TRIAL=1
run auto fattree --warmup 8
check "auto: no message came wrong" test "$(value wrong auto)" = 0
check "auto: the shim saw all calls" grep -q '^   "calls": 9,$' auto.json
check "auto: not slower than MPI" \
    awk -v a="$(value carried_time_us auto)" -v d="$(value direct_time_us auto)" \
    'BEGIN { exit !(a > 0 && a <= d * 1.01) }'
export CARPOOL_MODE=off
run off fattree --warmup 0
check "off: as direct" test "$(value carried_time_us off)" = "$(value direct_time_us off)"
check "off: as direct in the other runs" test "$(value direct_time_us off)" = "$(value direct_time_us auto)"

# Allgathers with the ranks dealt to the nodes in turn, and in blocks.
gather() { # file, CARPOOL_MODE, argument...
    file=$1 mode=$2
    shift 2
    CARPOOL_MODE=$mode sh "$top_srcdir/bench/sim/simulate.sh" -x allgather \
        "$top_builddir" 64 edr.machine fattree --json --bytes 16384,64 --rounds 1 "$@" >"$file" 2>"$file.err"
    ran "allgather, $file: the program runs" $?
    check "allgather, $file: right" test "$(value wrong "$file")" = 0
}
ratio() { # bytes, file, most: of Carpool's time over MPI's
    awk -v c="$(value "carried_$1_bytes_us" "$2")" -v d="$(value "direct_$1_bytes_us" "$2")" -v most="$3" \
        'BEGIN { exit !(c > 0 && c <= d * most) }'
}
gather forced force --warmup 3 --cyclic 16
check "allgather: small ones in turn cost no more when forced" ratio 64 forced 1.01
check "allgather: large ones in turn gain" ratio 16384 forced 0.3
gather blocks auto --warmup 24
check "allgather: small ones in blocks gain" ratio 64 blocks 0.9
check "allgather: large ones in blocks lose nothing" ratio 16384 blocks 1.02

sh "$top_srcdir/bench/sim/simulate.sh" -x simulated_graph "$top_builddir" 16 \
    edr.machine fattree overload --json --repetitions 1 --method plain/none,sort:hypercube >array 2>array.err
ran "the array: right, and the same by both methods" $?
check "the array: one request for an element reaches its owner" \
    grep -q '"method": "sort:hypercube".*"reads_received_last": 256,' array
check "the array: faster than all to all" awk -F 'time_median_us": ' \
    '{ split($2, us, ","); time[NR] = us[1] } END { exit !(NR == 2 && time[2] > 0 && time[2] < time[1]) }' array
done_testing
