#!/bin/sh
# Plans kept between runs (CARPOOL_PLAN_CACHE): the second run reads what the first one planned and
# is otherwise the same; what is damaged, foreign or cannot be read or written is told once, and the
# run goes on.
#
#   check_plan_cache.sh      with top_srcdir and top_builddir in the environment
#
# Runs bench/spmv on a few ranks. Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
mpiexec=${MPIEXEC:-mpiexec.hydra}
carpool=$top_builddir/cli/carpool
spmv=$top_builddir/bench/spmv
yield=$top_builddir/bench/.libs/libyield.so
for file in "$carpool" "$spmv" "$top_builddir/shim/.libs/libcarpool.so" "$yield"; do
    [ -e "$file" ] || skip_all "no $file"
done
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
clean_environment
make_scratch
cd "$tmp" || exit 2
"$top_builddir/bench/generate" powerlaw --rows 600 --degree 8 >m.mtx || skip_all "no matrix"

as_user= # a command that starts another one as another user
run() { # name of the report, option...; leaves out, err and $code
    report=$1
    shift
    # shellcheck disable=SC2086
    timeout -k 5 60 "$mpiexec" -n 4 -genv LD_PRELOAD "$yield" $as_user "$carpool" run --mode=force \
        --ranks-per-node=2 --report="$report" "$@" "$spmv" --form row --iterations 12 m.mtx >out 2>err </dev/null
    code=$?
}
same_result() { # description: no more than $2 warnings, with this text
    check "$1: the program runs" test $code -eq 0
    check "$1: its result is the same" sh -c 'grep checksum out | cmp -s reference'
    if [ -z "${2:-}" ]; then
        none "$1: no warnings" "$(cat err)"
    else
        check "$1: one warning" test "$(grep -c warn err)" -eq 1 -a "$(grep -Fc "$2" err)" -eq 1
    fi
}
what_was_planned() { # report
    grep -Ev '"((least|mean|most)_us|us_per_call|(meetings|planning|trials|gained)_ms|plan_ms|made_ms|seconds|started|CARPOOL_[A-Z_]*)"' "$1"
}

run none.json --strategy=balance
grep checksum out >reference
check "without: the program runs" test $code -eq 0 -a -s reference

run first.json --strategy=balance --plan-cache=plans
same_result "the first run"
kept=$(cd plans && echo plan-*.carpool)
check "one file" test -f "plans/$kept" -a "$(find plans -type f | wc -l)" -eq 1
cp "plans/$kept" whole
none "planned, not read" "$(grep made_ms first.json)"
run second.json --strategy=balance --plan-cache=plans
same_result "the second run"
check "read, not planned" grep -q '"made_ms": [0-9]' second.json
check "the file stays" cmp "plans/$kept" whole
for report in none first second; do what_was_planned $report.json >$report; done
check "the plan is the same without and with the cache" cmp none first
check "the plan is the same when it was read" cmp none second
check "carpool report tells" sh -c "'$carpool' report second.json | grep -q 'read from the plan cache in'"
check "the page tells" sh -c "'$carpool' report second.json --html page.html &&
    grep -q 'time to read the plan from the cache, ms' page.html"
run info.json --strategy=balance --plan-cache=plans --verbose=info
check "at level info it is told" grep -q 'read from the plan cache (planning took' err

run other.json --strategy=vpt:2 --plan-cache=plans
same_result "another strategy"
other=$(cd plans && find . -name 'plan-*' ! -name "$kept")
check "has another file" test -f "plans/$other"
none "and is planned" "$(grep made_ms other.json)"

broken() { # description, text of the warning
    run found.json --strategy=balance --plan-cache=plans
    same_result "$1" "CARPOOL_PLAN_CACHE: plans/$kept: $2"
    run found.json --strategy=balance --plan-cache=plans
    same_result "$1, afterwards"
    check "$1, afterwards: read" grep -q made_ms found.json
}
half=$(($(wc -c <whole) / 2))
head -c $half whole >"plans/$kept"
broken "cut off" "is damaged"
{ head -c $half whole; printf '\377'; tail -c +$((half + 2)) whole; } >"plans/$kept"
broken "a byte changed" "is damaged"
: >"plans/$kept"
broken "empty" "is no file of plans"
cp "plans/$other" "plans/$kept"
broken "of another pattern" "holds plans of another pattern"

run wrong.json --strategy=balance --plan-cache=m.mtx
same_result "a file" "CARPOOL_PLAN_CACHE: cannot make the directory m.mtx (Not a directory)"
run wrong.json --strategy=balance --plan-cache=nowhere/plans
same_result "below nothing" "CARPOOL_PLAN_CACHE: cannot make the directory nowhere/plans (No such file"

# --- as a user who may not do everything
if [ "$(id -u)" -eq 0 ]; then
    as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
chmod 755 . && mkdir -m 777 there && mkdir closed && chmod 000 closed
cp -p "plans/$kept" there/ 2>/dev/null
if $as_user test -x "$carpool" -a -x "$spmv" -a -r . 2>/dev/null; then
    run there/wrong.json --strategy=balance --plan-cache=closed
    same_result "unreadable" "CARPOOL_PLAN_CACHE: cannot read the directory closed (Permission denied)"
    chmod 555 plans
    run there/read.json --strategy=balance --plan-cache=plans
    same_result "read-only, with the plan"
    check "read-only, with the plan: read" grep -q made_ms there/read.json
    run there/read.json --strategy=vpt:1 --plan-cache=plans
    same_result "read-only, without" "cannot be written: Permission denied; plans of this run are not kept"
    chmod 000 "there/$kept" && chmod 755 plans
    run there/read.json --strategy=balance --plan-cache=there
    same_result "an unreadable file" "cannot be opened: Permission denied"
else
    skip "what another user may not do" "no setpriv, or the build cannot be read by others"
fi
chmod 700 closed

cd / && done_testing
