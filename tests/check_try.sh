#!/bin/sh
# carpool try: programs of our own through all modes; and, by a launcher that starts one process, how
# outputs are compared, what is told of runs that fail, and wrong arguments.
#
#   check_try.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
top_builddir=$(cd "$top_builddir" && pwd)
carpool=$top_builddir/cli/carpool
library=$top_builddir/shim/.libs/libcarpool.so
users=$top_builddir/tests/mpi/users
for file in "$carpool" "$library"; do
    [ -e "$file" ] || skip_all "no $file"
done
clean_environment
make_scratch
cd "$tmp" || exit 2

try() { # arguments; leaves out, err and $code
    timeout -k 5 100 "$carpool" try "$@" >out 2>err </dev/null
    code=$?
}
says() { # description, extended regular expression
    if grep -Eq -e "$2" out; then ok "$1"; else not_ok "$1"; say "$(cat out err)"; fi
}
row() { # run: its line of the last table
    sed -n "s/^  $1  *[0-9.]* *[0-9.]* *[0-9.]* *~*//p" out
}

# --- a launcher without MPI; the program writes a report as the library would
cat >alone <<'SH'
#!/bin/sh
shift 2 # -n RANKS
exec "$@"
SH
cat >app <<'SH'
#!/bin/sh
mode=${CARPOOL_MODE:-plain}
[ -z "${CARPOOL_REPORT:-}" ] || echo '{"ranks": 4, "patterns": [
    {"kind": "pt2pt", "tag": 5, "calls": 9, "calls_planned": 7, "strategy": "vpt:2", "ranks": 4},
    {"kind": "pt2pt", "tag": 6, "calls": 9, "calls_planned": 0, "strategy": "none", "ranks": 4, "left_alone": "no gain"},
    {"kind": "pt2pt", "tag": 7, "calls": 9, "calls_planned": 0, "strategy": "none", "ranks": 4, "left_alone": "no gain"}]}' >"$CARPOOL_REPORT"
. ./body
SH
chmod +x alone app
each() { # options...; the body of the program is on standard input
    cat >body
    try -n 4 --launcher="$tmp/alone" --no-yield --repeat=2 --output=kept "$@" ./app
}

each <<'SH'
echo "residual 1.25e-3 after 7 steps"
SH
check "the same outputs: exit status 0" test $code -eq 0
says "the same outputs: told" '^  force .* same +1 of 3$'
says "what was carried" 'carried: pt2pt, tag 5 by vpt:2 in 7 of 9 calls'
says "what was not, and why" 'left to MPI: no gain \(2 exchanges\)'
check "files of all runs" test -s kept/app/plain-2.out -a -s kept/app/force-2.out -a -s kept/app/auto-1.json
check "the page" grep -q '</html>' kept/index.html
check "the page leads to the report of a run" sh -c \
    "grep -q '<a href=\"app/auto-2.html\">auto</a>' kept/index.html && grep -q '7 of 9 calls' kept/app/auto-2.html"
check "the result is JSON that carpool report shows" \
    sh -c "'$carpool' report kept/try.json | grep -q 'carried: pt2pt, tag 5 by' && '$carpool' report kept/try.json --html=again.html && cmp again.html kept/index.html"
check "no report for others" sh -c "! '$carpool' map kept/try.json 2>map.err && grep -q 'no report' map.err"

each <<'SH'
[ $mode = force ] && echo "residual 1.25e-4 after 7 steps" || echo "residual 1.25e-3 after 7 steps"
SH
check "another number: exit status 1" test $code -eq 1
says "another number: told" '^  force .* differs'
says "another number: shown" 'force: residual 1.25e-4 after 7 steps'
check "another number: only in that mode" test "$(row auto | cut -d' ' -f3)" != differs

each <<'SH'
[ $mode = auto ] && echo "one line more"
echo "residual 1 2 3"
SH
says "one line more" '^  auto .* differs'
each <<'SH'
[ $mode = auto ] || echo "rank 3 of 4"
echo "rank 1 of 4"
SH
says "a line less" '^  auto .* differs'
each <<'SH'
[ $mode = auto ] && echo "sum nan" || echo "sum 1.5"
SH
says "no number any more" '^  auto .* differs'

each <<'SH'
n=$(date +%N)
echo "Elapsed time: 0.$n residual 1.5"
echo "solved in 1.$n seconds, 3.$n Gflop/s and 2.$n MB/s (0.$n us)"
echo "Wall clock  = $n"
echo "$(date) on $(hostname)"
echo "started 12:34:$(date +%S), rank 3, pid $$"
SH
check "timings, clocks and process ids are not compared" test $code -eq 0
says "nothing varies besides" '^  force .* same'
check "nothing of them counts as the program's own" sh -c '! grep -q "vary without" out'
each <<'SH'
[ $mode = force ] && echo "time 1.5 s residual 2" || echo "time 2.5 s residual 1"
SH
says "numbers behind other words are" '^  force .* differs'
each <<'SH'
[ $mode = force ] && pair=5 || pair=4
printf 'Section | min time | %%total | atoms\n-------------\nPair | 0.%d | %d | 7\nOther | | 0.1%d | 8\n' $pair 3$pair $pair
SH
check "shares and times of a table are not compared" test $code -eq 0
check "nor do they vary" sh -c '! grep -q "vary without" out'
each <<'SH'
[ $mode = force ] && atoms=5 || atoms=4
printf 'Section | min time | atoms\nPair | 0.1 | %d\n' $atoms
SH
says "what else a table has is" '^  force .* differs'
each <<'SH'
[ $mode = force ] && atoms=5 || atoms=4
printf 'Section | min time\nPair | 0.1\nsums: 1.5\nsum | %d\n' $atoms
SH
says "and what comes after it" '^  force .* differs'
each <<'SH'
echo "seed $(date +%N) value 7"
SH
check "what varies without Carpool is not compared" test $code -eq 0
says "and is told" '1 of 1 lines vary without Carpool'
each <<'SH'
[ $mode = force ] && v=8 || v=7
echo "seed $(date +%N) value $v"
SH
says "the rest of such a line is" '^  force .* differs'
each <<'SH'
for k in 1 2 3 4 5; do echo "rank $k says $((k * k))"; done | if [ $mode = force ]; then sort -r; else cat; fi
SH
check "lines in another order" test $code -eq 0
each <<'SH'
[ $mode = force ] && printf 'a \377 binary\0 line\n' || printf 'another \376\n'
SH
check "bytes that are no text" test $code -eq 1

each <<'SH'
[ $mode = force ] && echo "solved (0.29 overall)" || echo "solved ( 0.29  overall )"
SH
check "blanks do not count" test $code -eq 0
each <<'SH'
:
SH
check "nothing printed: exit status 0" test $code -eq 0
says "nothing printed: told" '^  force .* nothing'
says "nothing printed: nothing compared" 'there was nothing to compare'

# --- files that runs write
each <<'SH'
cat body >"result-$$.txt"
echo "sum 1.5" >>"result-$$.txt"
echo "written $(date +%N) 4" >written.txt
printf '%s\0' $mode >binary
SH
rm -f result-*.txt written.txt binary
check "the same files: exit status 0" test $code -eq 0
says "the same files: compared" '^  force .* same'
says "the same files: told" 'text files that a run wrote into the present directory, compared, too: 2$'
check "the files of all runs" grep -q 'sum 1.5' kept/app/force-2.files
each <<'SH'
[ $mode = force ] && echo "sum 1.6" >written.txt || echo "sum 1.5" >written.txt
SH
check "another number in a file: exit status 1" test $code -eq 1
says "another number in a file: shown" 'force: sum 1.6'
each <<'SH'
cat written.txt
SH
check "files that were there: exit status 0" test $code -eq 0
check "files that were there are the program's own" test ! -e kept/app/force-2.files

# --- the verdict
each --repeat=3 --modes=auto <<'SH'
[ $mode = plain ] && sleep 0.02 || sleep 1.5 # longer than a loaded machine keeps one run waiting
echo done
SH
check "slower: marked on the page" grep -Eq '<td class="bad">0\.[0-9]+, slower</td>' kept/index.html
says "slower: the first line says so" '^app: do not use Carpool for runs of [1-9][.0-9]* s: [0-9.]*% slower; its meetings, planning and trials took 0.0 ms$'
each --repeat=3 --modes=auto <<'SH'
[ $mode = plain ] && sleep 1.5
echo done
SH
says "faster: the first line says so" '^app: use Carpool: [0-9.]* times as fast'
each --repeat=3 --modes=auto <<'SH'
case $0$mode in *plain) test -e was && { rm was; sleep 0.1; } || : >was ;; *) sleep 0.05 ;; esac
SH
says "no difference: the first line says so" '^app: no difference: [0-9.]*% (slower|faster), but plain runs vary by [0-9.]*%$'
says "no difference: the ratio is marked" '^  auto .* ~[0-9.]+ '
check "no difference: on the page, too" grep -Eq '<td>~[0-9.]+</td>' kept/index.html
each --modes=auto <<'SH'
echo $mode
SH
says "other output: the first line says so" '^app: do not use Carpool for it: in mode auto it prints something else$'

# --- runs that fail
each <<'SH'
[ $mode != auto ] || exit 3
SH
check "an exit code: exit status 1" test $code -eq 1
says "an exit code: the run failed" '^  auto .* failed'
says "an exit code: told" 'run 1 ended with code 3; see kept/app/auto-1.err'
each --time-limit=1 --repeat=1 --modes=off <<'SH'
[ $mode != off ] || sleep 30
SH
check "too long: exit status 1" test $code -eq 1
says "too long: told" 'run 1 was ended after 1 s'
each --modes=auto <<'SH'
rm -f "${CARPOOL_REPORT:-none}"
SH
says "no report" 'there is no report: the program did not call MPI_Finalize'

# --- tables
cat >body <<'SH'
echo "$@"
SH
printf '# programs\none 2 ./app a "b c"\n\ntwo 3 ./app\n' >table
try --table=table --launcher="$tmp/alone" --no-yield --repeat=1 --output=kept --json=result.json
check "a table" test $code -eq 0 -a -s result.json
says "a table: the first" '^one: too few runs'
says "a table: its command" '^  ./app a b c, 2 ranks'
says "a table: the last" '^  ./app, 3 ranks'
echo 'three ./app' >>table
try --table=table --launcher="$tmp/alone" --no-yield --repeat=1 --output=kept
check "a line that is none" sh -c "test $code -eq 1 && grep -q 'table:5: a line has a name' err && grep -q '^two' out"

# --- wrong arguments: one line that names the thing and the remedy
wrong() { # status, text, arguments...
    expected=$1 text=$2
    shift 2
    try "$@"
    check "carpool try $*: $text" sh -c "test $code -eq $expected -a \"\$(wc -l <err)\" -eq 1 && grep -Fq -e '$text' err"
}
wrong 2 "which PROGRAM?"
wrong 2 "how many ranks?" ./app
wrong 2 "-n takes a number from 1 to" -n 0 ./app
wrong 2 "-n takes a number from 1 to" -n x ./app
wrong 2 "--repeat takes a number from 1 to 1000" -n 2 --repeat=-1 ./app
wrong 2 "--modes takes off, auto and force" -n 2 --modes=profile ./app
wrong 2 "names no mode" -n 2 --modes= ./app
wrong 2 "a PROGRAM, or a table" --table=table ./app
wrong 2 "did you mean --time-limit" -n 2 --time-limt=3 ./app
wrong 1 "no launcher: nosuch: there is none; install MPICH" -n 2 --launcher=nosuch ./app
wrong 1 "cannot start ./none" -n 2 --launcher="$tmp/alone" ./none
wrong 1 "it is not in PATH" -n 2 --launcher="$tmp/alone" nosuchprogram
wrong 1 "none.txt: No such file" --launcher="$tmp/alone" --table=none.txt
wrong 1 "cannot make the directory app/x" -n 2 --launcher="$tmp/alone" --output=app/x ./app
LD_PRELOAD=$library
export LD_PRELOAD
wrong 1 "LD_PRELOAD has Carpool already" -n 2 --launcher="$tmp/alone" ./app
unset LD_PRELOAD

# --- our own programs, under MPI, through all modes
if command -v mpiexec.hydra >/dev/null 2>&1 && [ -x "$users/halo" ]; then
    : >table
    for program in "halo 64 30" "cg 64 20" "multigrid 8 12" "stencil" "substeps 40"; do
        # shellcheck disable=SC2086
        set -- $program
        echo "$1 5 $users/$program" >>table
    done
    try --table=table --repeat=1 --output=ours
    check "our own programs: exit status" test $code -eq 0
    [ $code -eq 0 ] || say "$(cat out err)"
    holds_schema "our own programs: the reports" ours/*/off-1.json ours/*/auto-1.json ours/*/force-1.json
    for program in halo cg multigrid substeps; do
        check "$program: something was carried in mode force" \
            grep -Eq '"calls_planned": [1-9]' "ours/$program/force-1.json"
    done
    if [ "$(getconf _NPROCESSORS_ONLN)" -lt 5 ]; then
        says "more ranks than cores: told" '5 ranks on [1-4] cores: all runs have libyield.so'
    fi
else
    skip "our own programs" "no mpiexec.hydra, or they are not built"
fi

cd / && done_testing
