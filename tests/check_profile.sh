#!/bin/sh
# Profile runs: nothing changes, and the summary, the report and the patterns tell what there was;
# and what happens when they cannot be written, or the run is interrupted.
#
#   check_profile.sh      with top_srcdir and top_builddir in the environment
#
# Runs programs of bench/ on a few ranks. Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
mpiexec=${MPIEXEC:-mpiexec.hydra}
carpool=$top_builddir/cli/carpool
spmv=$top_builddir/bench/spmv
messages=$top_builddir/bench/messages
yield=$top_builddir/bench/.libs/libyield.so
library=$top_builddir/shim/.libs/libcarpool.so
pending=$top_builddir/tests/mpi/pending
alltoalls=$top_builddir/tests/mpi/alltoalls
for file in "$carpool" "$spmv" "$messages" "$library" "$yield" "$pending" "$alltoalls"; do
    [ -e "$file" ] || skip_all "no $file"
done
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
clean_environment
make_scratch
cd "$tmp" || exit 2
"$top_builddir/bench/generate" powerlaw --rows 600 --degree 8 >m.mtx || skip_all "no matrix"

run() { # mpiexec's and the program's arguments; leaves out, err and $code
    timeout -k 5 60 "$mpiexec" -genv LD_PRELOAD "$yield" "$@" >out 2>err </dev/null
    code=$?
}
member() { # key, report: its value in the first pattern
    sed -n "s/^   \"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$2" | head -n 1
}
cells() { # side, report: the sum over the first pattern's cells
    awk -v side="$1" '
        $1 == "\"" side "\":" { inside = 1 }
        inside && /"cells"/ { counting = 1; next }
        counting && /\]/ { print sum + 0; exit }
        counting { gsub(/[",]/, ""); for (k = 1; k <= NF; k++) { split($k, c, ":"); sum += c[2] } }
    ' "$2"
}

# --- neighborhood collectives
run -n 6 "$spmv" --warmup 10 --iterations 20 m.mtx
grep checksum out >reference
run -n 6 "$carpool" run --profile --ranks-per-node=3 "$spmv" --warmup 10 --iterations 20 m.mtx
check "the program runs" test $code -eq 0
grep checksum out >found
check "its result is the same" cmp reference found
check "the report is in carpool-profile" test -s carpool-profile/report.json
holds_schema "the report holds to its schema" carpool-profile/report.json
check "the program" grep -q '"program": ".*spmv"' carpool-profile/report.json
check "its arguments" test "$(sed -n '/"arguments"/,/]/p' carpool-profile/report.json | tr -d ' \n')" = \
    '"arguments":["--warmup","10","--iterations","20","m.mtx"],'
check "the date" grep -Eq '"started": "20[0-9-]{8}T[0-9:]{8}Z"' carpool-profile/report.json
check "MPI's version" grep -Eq '"mpi": "MPICH [0-9]' carpool-profile/report.json
check "the model's machine" grep -q '"machine": "edr"' carpool-profile/report.json
check "the mode" grep -q '"mode": "profile"' carpool-profile/report.json
check "the kind" test "$(member kind carpool-profile/report.json)" = Neighbor_alltoallv
check "all calls" test "$(member calls carpool-profile/report.json)" -eq 30
check "none of them rerouted" test "$(member calls_planned carpool-profile/report.json)" -eq 0
n_messages=$(member messages carpool-profile/report.json)
check "messages" test "${n_messages:-0}" -gt 5
check "the picture before holds them all" \
    test "$(cells direct carpool-profile/report.json)" -eq "$n_messages"
check "the picture after holds some" test "$(cells planned carpool-profile/report.json)" -gt 0
check "time was measured" grep -Eq '"us_per_call": [1-9]' carpool-profile/report.json
pattern=carpool-profile/$(member file carpool-profile/report.json)
check "the pattern is read by carpool plan" \
    sh -c "'$carpool' plan --unit 1 --ranks-per-node 3 '$pattern' --strategy direct |
        grep -q '6 ranks, $n_messages messages'"
none "stderr holds the summary only" "$(grep -v '^carpool: ' err)"
check "the summary is short" test "$(wc -l <err)" -eq 3 -a "$(awk 'length > 140' err | wc -l)" -eq 0
check "the summary counts exchanges" grep -Eq \
    '^carpool: 2 exchanges, measured [0-9.e-]+ s in all their calls; by the model of edr mode auto would save [0-9.e-]+ s$' err
check "the summary names the report" grep -q '^carpool: report in carpool-profile/report.json; ' err
check "carpool report shows it" \
    sh -c "'$carpool' report carpool-profile/report.json | grep -q 'Neighbor_alltoallv on 6 ranks, 30 calls'"

# --- ranks that give up the processor, by a library of any name, or not
cp "$yield" another-name.so
timeout -k 5 60 "$mpiexec" -n 2 -genv LD_PRELOAD "$tmp/another-name.so" "$carpool" run --profile=yields "$messages" \
    --peers 1 --iterations 5 >out 2>err </dev/null
check "they yield" grep -q '"yields": true' yields/report.json

# --- point-to-point messages
run -n 6 "$carpool" run --profile=p2p --ranks-per-node=3 "$messages" --peers 4 --iterations 5 --blocks 60
check "messages: the program runs" test $code -eq 0
holds_schema "messages: the report" p2p/report.json
check "messages: the kind" test "$(member kind p2p/report.json)" = pt2pt
check "messages: the tag" test -n "$(member tag p2p/report.json)"
calls=$(member calls p2p/report.json)
check "messages: how often, about" test "${calls:-0}" -gt 200 -a "${calls:-0}" -lt 1400
run -n 6 "$carpool" run --profile=long --ranks-per-node=3 "$messages" --peers 4 --iterations 5 --blocks 600
long=$(member calls long/report.json)
check "messages: how often, in a longer run" test "${long:-0}" -gt 2000 -a "${long:-0}" -lt 14000
check "messages: none rerouted" test "$(member calls_planned p2p/report.json)" -eq 0
check "messages: the pattern" test "$(member messages p2p/report.json)" -eq 24
check "messages: time was measured" grep -Eq '"mpi_us": [0-9]*\.[0-9]*[1-9]' p2p/report.json
check "messages: why they were left to MPI" grep -q '"left_alone": "' p2p/report.json
check "messages: what decided" sh -c "grep -q '\"matching_us\": 1\.2' p2p/report.json &&
    '$carpool' report p2p/report.json | grep -q 'By the model the plan takes .* and matching its messages 1.20: .*below'"

run -n 6 "$carpool" run --mode=force --strategy=direct --report=lanes.json "$messages" --peers 4 --iterations 5 --blocks 60
check "messages: what goes by lanes alone forwards nothing" test "$(member considered lanes.json)" = "direct by lanes" -a \
    "$(member calls_planned lanes.json)" -gt 0 -a "$(member forwarded_bytes lanes.json)" -eq 0
run -n 6 "$carpool" run --cost=100 --report=windows.json "$messages" --peers 4 --iterations 5 --blocks 4000
check "messages: a window by MPI was measured" grep -Eq '"mpi_us": [1-9][0-9]*\.[0-9]*,?$' windows.json
holds_schema "messages: the report of windows" windows.json

# --- the other collectives: planned, counted, left to MPI
counted() { # description, kind, program...
    what=$1 kind=$2
    shift 2
    run -n 6 "$@"
    cp out reference
    run -n 6 "$carpool" run --profile=other --ranks-per-node=3 "$@"
    check "$what: the same output" sh -c "test $code -eq 0 && cmp reference out"
    holds_schema "$what: the report" other/report.json
    check "$what: the kind" grep -q "\"kind\": \"$kind\"" other/report.json
    check "$what: calls" test "$(member calls other/report.json)" -gt 3
    check "$what: none rerouted" test "$(member calls_planned other/report.json)" -eq 0
    check "$what: planned" test "$(member messages other/report.json)" -ge 5
    check "$what: only because of the profile run" \
        grep -q '"left_alone": "a profile run changes nothing' other/report.json
}
for form in nonblocking persistent; do
    counted $form Neighbor_alltoallv "$pending" --graph hub --op alltoallv --form $form \
        --graphs 1 --slots 2 --events 200 --seed 28
done
counted alltoallw Alltoallw "$alltoalls" --form iw --calls 60 --seed 10

# --- the summary of runs with nothing to reroute, and with much
run -n 1 "$carpool" run --profile=idle "$messages" --peers 4 --iterations 5
check "nothing seen: told" grep -q '^carpool: no exchanges were seen' err
run -n 7 "$carpool" run --profile=many "$pending" --graph mix --graphs 9 --events 250 --seed 20
check "many exchanges: counted" grep -Eq '^carpool: [1-9][0-9]* exchanges, measured [0-9.e-]+ s in all their calls' err

# --- a run that asks for a report gets one, whatever happens
told() { # description, text of carpool report
    check "$1: there is a report" test $code -eq 0 -a -s left.json
    holds_schema "$1: the report" left.json
    "$carpool" report left.json >shown 2>&1
    check "$1: carpool report says so" grep -Fqx "$2" shown
    "$carpool" report left.json --html=left.html
    check "$1: the page, too" grep -Fiq "${2%%(*}" left.html
    rm -f left.json
}
left="all calls were left to MPI: "
run -n 2 "$carpool" run --mode=off --report=left.json "$spmv" --iterations 2 m.mtx
told "mode off" "${left}CARPOOL_MODE is off"
none "mode off: nothing on stderr" "$(cat err)"
run -n 1 "$carpool" run --report=left.json "$messages" --peers 1 --iterations 5 --blocks 3
told "one rank" "no exchanges were seen"
lacks_it="${left}some ranks run without the library (set LD_PRELOAD for every program of the launcher's line, or use mpiexec -genv)"
run -n 1 "$spmv" --iterations 2 m.mtx : \
    -n 2 "$carpool" run --report=left.json "$spmv" --iterations 2 m.mtx
told "the first rank without the library" "$lacks_it"
run -n 2 "$carpool" run --profile=left "$spmv" --iterations 2 m.mtx : -n 1 "$spmv" --iterations 2 m.mtx
mv left/report.json left.json
told "the last rank without the library" "$lacks_it"
check "the last rank without the library: the summary says so" grep -Fqx "carpool: $lacks_it" err

# --- the library may have another name, as each rank's own copy may
cp "$(readlink -f "$top_builddir/shim/.libs/libcarpool.so")" another.so
run -n 3 -genv LD_PRELOAD "$PWD/another.so" -genv CARPOOL_REPORT other.json "$spmv" --iterations 2 m.mtx
check "under another name: all ranks have it" grep -q '"left_out": 0' other.json
check "under another name: nothing is left" test $code -eq 0 -a -z "$(grep left_alone other.json | grep 'without the library')"
none "under another name: nothing on stderr" "$(cat err)"

# --- planning waits until the calls have taken as long
patiently() { # warmup, iterations
    run -n 2 -genv CARPOOL_LEARN 0 -genv CARPOOL_COST 50 "$carpool" run --report=patient.json "$spmv" --warmup "$1" --iterations "$2" m.mtx
}
patiently 0 3
check "few calls are not planned" grep -q '"it was over before planning could pay"' patient.json
patiently 5000 3
check "many calls are planned" grep -Eq '"trial_calls": [1-9]' patient.json

# --- what cannot be written is told once, and nothing else changes
wrong() { # description, text of the warning, argument...
    what=$1 text=$2
    shift 2
    run "$@" "$spmv" --iterations 2 m.mtx
    check "$what: the program runs" test $code -eq 0
    check "$what: one warning" sh -c "test \"\$(grep -c warn err)\" -eq 1 && grep -Fq '$text' err"
}
wrong "output that is a file" "CARPOOL_OUTPUT: cannot make the directory m.mtx (Not a directory)" \
    -n 2 "$carpool" run --output=m.mtx
wrong "output below nothing" "CARPOOL_OUTPUT: cannot make the directory none/a (No such file" \
    -n 2 "$carpool" run --profile=none/a
if [ -w /dev/full ]; then
    wrong "full disk" "CARPOOL_REPORT: cannot write /dev/full (No space left on device)" \
        -n 2 "$carpool" run --report=/dev/full
else
    skip "full disk" "no /dev/full"
fi
wrong "mistyped variable" "CARPOOL_MDOE is no setting and has no effect; did you mean CARPOOL_MODE?" \
    -n 2 -genv CARPOOL_MDOE off "$carpool" run
wrong "mistyped prefix" "CARPOL_MODE has no effect; did you mean CARPOOL_MODE?" \
    -n 2 -genv CARPOL_MODE off "$carpool" run
run -n 2 -genv CARPOOL_PLANNING togehter "$carpool" run "$spmv" --iterations 2 m.mtx
check "word that there is not: refused" \
    sh -c "test $code -eq 2 && grep -Fq \"CARPOOL_PLANNING='togehter' cannot be used: it takes auto|root|together\" err"
wrong "machine that is not there" "CARPOOL_MACHINE: none.txt: no such file, and no such machine" \
    -n 4 "$carpool" run --mode=force --machine=none.txt
echo 'distances none.bin' >far.txt
wrong "distances that are not there" "planning goes on without distances" \
    -n 4 "$carpool" run --mode=force --machine=far.txt
wrong "topology that is none" "nodes are taken as one socket" \
    -n 4 "$carpool" run --mode=force --topology=none.xml
run -n 3 "$carpool" run --mdoe=off "$spmv" m.mtx
check "mistyped option: told once for all ranks" \
    sh -c "test $code -ne 0 && test \"\$(grep -c 'did you mean --mode?' err)\" -eq 1"
run -n 2 "$carpool" run ./none
check "missing program: told once for all ranks" \
    sh -c "test $code -ne 0 && test \"\$(grep -c 'cannot start ./none' err)\" -eq 1"

# --- an interrupted run: no half report, the one from before stays
mkdir cut && echo before >cut/report.json
timeout -k 5 60 "$mpiexec" -n 2 -genv LD_PRELOAD "$yield" "$carpool" run --profile=cut "$spmv" \
    --iterations 10000000 m.mtx >out 2>err </dev/null &
pid=$!
k=0
while [ $k -lt 400 ] && ! ls cut/pattern-*.mtx >/dev/null 2>&1; do
    sleep 0.1
    k=$((k + 1))
done
sleep 0.3
kill -TERM $pid
wait $pid
code=$?
# hydra's own status is 0 or 15, as it happens; 124 and 137 are timeout's
check "interrupted: it had begun, and ends" test $k -lt 400 -a $code -ne 124 -a $code -ne 137
check "interrupted: the report from before stays" grep -qx before cut/report.json
none "interrupted: no half file" "$(
    find cut -type f ! -name report.json ! -name 'pattern-*.mtx')"

cd / && done_testing
