#!/bin/sh
# carpool calibrate as its user sees it: the files it writes are read again, classes that are not
# there are left out, wrong arguments are refused. Figures are only looked at for being there: a busy
# machine gives any.
#
#   check_calibrate.sh      with top_srcdir, top_builddir and MPIEXEC in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
carpool=$top_builddir/cli/carpool
yield=$top_builddir/bench/.libs/libyield.so
[ -x "$top_builddir/calibrate/carpool-calibrate" ] || skip_all "no carpool-calibrate"
[ -n "${MPIEXEC:-}" ] && command -v "$MPIEXEC" >/dev/null 2>&1 || skip_all "no mpiexec"
clean_environment
make_scratch

calibrate() { # ranks, argument of mpiexec -genv or -, its value, argument of carpool calibrate...
    ranks=$1 variable=$2 value=$3
    shift 3
    [ "$variable" = - ] && variable=CALIBRATE_TEST
    timeout 100 "$MPIEXEC" -n "$ranks" -genv LD_PRELOAD "$yield" -genv "$variable" "$value" \
        "$carpool" calibrate "$@" </dev/null >"$tmp/out" 2>"$tmp/err"
    code=$?
}
said() { # description, exit status, file, fixed text
    if [ "$code" -eq "$2" ] && grep -Fq -e "$4" "$tmp/$3"; then
        ok "$1"
    else
        not_ok "$1"
        say "exit status $code, expected $2; expected '$4' in $3"
        say "$(cat "$tmp/out" "$tmp/err")"
    fi
}
keys() { # file: the keys that are set
    sed -n 's/^\([a-z][a-z_.]*\) .*/\1/p' "$1" | sed 's/\..*//' | sort -u | paste -s -d ' ' -
}

calibrate 2 - - --seconds 0.5
said "two ranks: the machine file on standard output" 0 out "socket.latency_us "
said "two ranks: lanes" 0 out "socket.lane.ns_per_byte "
check "two ranks: no other class" test "$(keys "$tmp/out")" = "item_ns segment_ns socket"
said "two ranks: why classes are not there" 0 out "# network.*: all ranks were on one node"
none "two ranks: costs are numbers" "$(grep -Ev '^(#.*|[a-z_.]+ [0-9.e+-]+|)$' "$tmp/out")"

# two nodes of two sockets with two ranks each
calibrate 8 MPIR_CVAR_NUM_CLIQUES 2 --seconds 1 --topology "pack:2 core:2 pu:1" \
    --ranks-per-node 4 -o "$tmp/my machine" --distances "$tmp/my distances.mtx"
said "eight ranks: the file is written" 0 err "$tmp/my machine written after"
check "eight ranks: all classes" \
    test "$(keys "$tmp/my machine")" = "distances item_ns network node ranks_per_node segment_ns socket"
check "eight ranks: nodes" grep -qx "ranks_per_node 4" "$tmp/my machine"
check "eight ranks: distances are named by their file" \
    grep -qx "distances my distances.mtx" "$tmp/my machine"
check "eight ranks: times per byte are named, too" \
    grep -qx "distances.ns_per_byte my distances.mtx.ns_per_byte" "$tmp/my machine"
if [ "$(getconf _NPROCESSORS_ONLN)" -lt 8 ]; then
    said "eight ranks: shared processors are warned about" 0 err "ranks share a processor"
else
    skip "eight ranks: shared processors are warned about" "there are eight"
fi
printf '8\n0 1 1\n0 5 3\n7 2 9\n' >"$tmp/pattern.txt"
"$carpool" plan --machine "$tmp/my machine" --strategy vpt:2+near,vpt:2+doubling,auto \
    "$tmp/pattern.txt" >"$tmp/out" 2>"$tmp/err"
code=$?
said "eight ranks: planning reads both files" 0 out ", 2 nodes"
printf '6\n0 1 1\n' >"$tmp/pattern.txt"
"$carpool" plan --machine "$tmp/my machine" "$tmp/pattern.txt" >"$tmp/out" 2>"$tmp/err"
code=$?
said "planning for another number of ranks is refused" 1 err "distances of 8 ranks, for a run of 6"
rm "$tmp/my distances.mtx.ns_per_byte"
printf '8\n0 1 1\n' >"$tmp/pattern.txt"
"$carpool" plan --machine "$tmp/my machine" "$tmp/pattern.txt" >"$tmp/out" 2>"$tmp/err"
code=$?
said "planning without the times per byte is refused" 1 err "distances.ns_per_byte: "
rm "$tmp/my distances.mtx"
"$carpool" plan --machine "$tmp/my machine" "$tmp/pattern.txt" >"$tmp/out" 2>"$tmp/err"
code=$?
said "planning without the distances is refused" 1 err "or take the line out"

calibrate 3 - - --seconds 0.5 --distances "$tmp/three.mtx"
said "three ranks: standard output names distances by the whole path" 0 out "distances "
check "three ranks: all pairs" test "$(grep -vc '^%' "$tmp/three.mtx")" -eq 7
check "three ranks: bytes of all pairs" test "$(grep -vc '^%' "$tmp/three.mtx.ns_per_byte")" -eq 7

# --- the preloaded library reads the same files
library=$top_builddir/shim/.libs/libcarpool.so
spmv() { # machine file; prints the checksum, warnings into err
    timeout 100 "$MPIEXEC" -n 4 -genv LD_PRELOAD "$library:$yield" -genv CARPOOL_MODE force \
        -genv CARPOOL_STRATEGY vpt:2+near -genv CARPOOL_MACHINE "$1" "$top_builddir/bench/spmv" \
        --iterations 5 "$tmp/matrix.mtx" </dev/null 2>"$tmp/err" | grep '^checksum'
}
if [ -r "$library" ] && [ -x "$top_builddir/bench/spmv" ] &&
    "$top_builddir/bench/generate" rgg --rows 300 --degree 30 -o "$tmp/matrix.mtx" 2>"$tmp/err"; then
    expected=$(spmv "")
    calibrate 4 - - --seconds 0.5 --distances "$tmp/four.mtx" -o "$tmp/four"
    said "four ranks" 0 err "written after"
    check "the library takes the distances: the same result" \
        test -n "$expected" -a "$(spmv "$tmp/four")" = "$expected"
    none "the library takes the distances: no warning" "$(grep warn "$tmp/err")"
    printf 'distances three.mtx\n' >"$tmp/other"
    check "distances of other ranks: the same result" test "$(spmv "$tmp/other")" = "$expected"
    check "distances of other ranks: one warning" test "$(grep -c \
        "three.mtx:.*distances of 3 ranks, for a run of 4.*goes on without" "$tmp/err")" -eq 1
    sed '$s/.*/nan/' "$tmp/four.mtx" >"$tmp/three.mtx"
    check "a damaged distance: the same result" test "$(spmv "$tmp/other")" = "$expected"
    check "a damaged distance: one warning" test "$(grep -c \
        "three.mtx:[0-9]*: .*not a number.*goes on without" "$tmp/err")" -eq 1
else
    skip "the library reads the files" "it was not built, or bench was not"
fi

calibrate 1 - -
said "one rank alone" 1 err "nobody to send to"
calibrate 2 - - --help
said "help" 0 out "usage: "
check "help: once" test "$(grep -c usage "$tmp/out")" -eq 1
calibrate 2 - - --seconds
said "an option without its value" 2 err "option '--seconds' needs a value"
calibrate 2 - - --ouput x
said "an unknown option" 2 err "no option '--ouput'; did you mean --output?"
calibrate 2 - - --seconds 0
said "wrong value" 2 err "'0' is not a value"
calibrate 2 - - --distances "a#b"
said "a path that a machine file cannot hold" 2 err "'a#b' is not a value"
calibrate 2 - - machine
said "a stray argument" 2 err "'machine' is too much"
calibrate 2 - - --topology rubbish
said "a wrong topology" 1 err "neither a readable file nor"
calibrate 2 - - -o "$tmp/none/machine"
said "no such directory" 1 err "$tmp/none/machine: cannot be written"
if [ -w /dev/full ]; then
    calibrate 2 - - --seconds 0.1 -o /dev/full
    said "a full disk" 1 err "/dev/full: cannot be written"
else
    skip "a full disk" "no /dev/full"
fi

mkdir "$tmp/bin"
cp "$carpool" "$tmp/bin/carpool"
"$tmp/bin/carpool" calibrate >"$tmp/out" 2>"$tmp/err"
code=$?
if [ "$code" -eq 1 ] && grep -q "nobody to send to" "$tmp/err"; then
    skip "without the MPI program" "it is installed"
else
    said "without the MPI program" 1 err "built or installed without its MPI program"
fi

done_testing
