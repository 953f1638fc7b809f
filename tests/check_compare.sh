#!/bin/sh
# carpool compare, with reports that are written here.
#
#   check_compare.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
carpool=$top_builddir/cli/carpool
[ -x "$carpool" ] || skip_all "no $carpool"
clean_environment
make_scratch
cd "$tmp" || exit 2

report() { # file, mode, seconds, us of a call by MPI, by the plan, planned of 100 calls, program
    cat >"$1" <<JSON
{"schema": 2, "version": "9", "ranks": 4, "mode": "$2", "seconds": $3,
 "run": {"program": "$7", "arguments": ["<x>"], "mpi": "MPICH 4", "machine": "edr", "yields": false},
 "patterns": [
  {"kind": "Neighbor_alltoallv", "pattern": "aa", "ranks": 4, "calls": 100, "calls_planned": $6,
   "strategy": "vpt:2", "direct": {"us_per_call": $4}, "planned": {"us_per_call": $5}},
  {"kind": "Neighbor_alltoallv", "pattern": "bb", "ranks": 4, "calls": 10, "calls_planned": 0,
   "strategy": "none", "direct": {"us_per_call": 5}},
  {"kind": "pt2pt", "tag": 3, "ordinal": 0, "ranks": 4, "calls": 7, "calls_planned": 0, "strategy": "none",
   "left_alone": "x"}]}
JSON
}
compare() { # arguments; leaves out and $code
    "$carpool" compare "$@" >out 2>err
    code=$?
}
says() { # description, extended regular expression
    if grep -Eq -e "$2" out; then ok "$1"; else not_ok "$1"; say "$(cat out err)"; fi
}

report a1 profile 2.0 100 null 0 ./app
report a2 profile 2.2 110 null 0 ./app
report a3 profile 2.1 90 null 0 ./app
report b1 auto 1.5 100 40 80 ./app
report b2 auto 1.4 100 30 80 ./app
report c1 auto 2.15 100 95 100 ./app
report c2 auto 1.9 100 105 100 ./other

compare a1 b1
check "two reports: exit status" test $code -eq 0
says "two reports: the program" '^A: ./app <x>$'
says "two reports: calls by MPI and by the plan together" 'Neighbor_alltoallv on 4 ranks #aa +100 +52 +1.92  vpt:2'
says "two reports: exchanges of one kind are told apart" 'Neighbor_alltoallv on 4 ranks #bb +5 +5 +1.00  MPI'
says "two reports: an exchange that was not timed" 'pt2pt, tag 3 on 4 ranks +- +- +-  MPI'
says "two reports: a single run tells little" 'B took 0.75 times as long as A. One run tells little'
compare a1 a2 a3 -- b1 b2
says "several: medians and spread" 'whole run, s +2.1 \(2 to 2.2\) +1.45 \(1.4 to 1.5\) +1.45 '
says "several: an exchange" '#aa +100 \(90 to 110\) +48 \(44 to 52\) +2.08  vpt:2; faster in every run'
says "several: the sum" 'in these exchanges, s +0.01005 .* faster in every run'
says "several: conclusion" 'B was faster in every run: it took 0.69 times'
cp out text
compare --html page.html a1 a2 a3 -- b1 b2
check "the page" sh -c "test $code -eq 0 && grep -q '</html>' page.html && grep -q '100 (90 to 110)' page.html && ! grep -q '<x>' page.html"
compare a1 a2 a3 -- b1 b2 --html again.html
check "the page, the option last" cmp page.html again.html
compare b1 b2 -- a1 a2 a3
says "slower" 'B was slower in every run'
compare a1 a2 -- c1 c2
says "no difference" 'No clear difference: the runs of A and of B overlap'
says "other programs" 'not alike: program \(./app <x>, ./other <x>\)'
sed 's/"yields": false/"yields": true, "cores": 4/' a1 >known.json
sed 's/"cores": 4/"cores": 8/' known.json >more.json
compare a1 known.json
says "ranks that give way, and cores that one report does not know" 'not alike: ranks give up the processor \(no, yes\)\.?$'
compare known.json more.json
says "other cores" 'not alike: cores \(4, 8\)'

wrong() { # status, text, arguments...
    expected=$1 text=$2
    shift 2
    compare "$@"
    check "carpool compare $*: $text" sh -c "test $code -eq $expected -a \"\$(wc -l <err)\" -eq 1 && grep -Fq -e '$text' err"
}
wrong 2 "which reports?"
wrong 2 "which reports?" a1
wrong 2 "which reports?" a1 a2 a3
wrong 2 "which reports?" a1 --
wrong 2 "which reports?" -- a1
wrong 2 "did you mean --html" a1 b1 --htm2=x
wrong 1 "No such file" a1 none
wrong 1 "cannot be created" a1 b1 --html none/page.html
echo '{"patterns": [{}, 5, {"calls": "x", "direct": 3}]}' >strange
compare strange strange
check "a strange report" test $code -eq 0
says "a strange report: told" 'do not say how long'
done_testing
