#!/bin/sh
# The library without memory: runs the programs of `memorylist` again and again, and each time another
# of the allocations that the library asks for fails, on one rank or on all, alone or with those that
# follow (nomemory.c).
#
#   run-memory.sh BUILDDIR LIBCARPOOL YIELDLIB [FILTER]
#
# BUILDDIR holds the programs and nomemory.so, YIELDLIB is preloaded in all runs (waiting ranks give
# way). FILTER is an extended regular expression for "program arguments". MEMORY_RUNS (8) is how often
# each line runs without memory, MEMORY_SEED (1) from which number on, TEST_LIST replaces the list,
# TEST_TIMEOUT the seconds of a run, TEST_PRELOAD is preloaded before all else, MPIEXEC is the launcher.
#
# A run passes when it prints what the program prints without the library and ends as it does, or when
# a rank says on stderr that memory ran out and the program ends with an error of MPI's, by no signal
# and in time. At least one allocation must have failed. Writes TAP; exits with 1 when a test failed.
set -uf
# shellcheck source=tests/tap.sh disable=SC1091
. "$(dirname "$0")/../tap.sh"
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB [FILTER]" >&2; exit 2; }
build=$1 library=$2 yield=$3 filter=${4:-.}
list=${TEST_LIST:-$(dirname "$0")/memorylist}
limit=${TEST_TIMEOUT:-60} n_runs=${MEMORY_RUNS:-8} seed=${MEMORY_SEED:-1}
mpiexec=${MPIEXEC:-mpiexec.hydra}
first=${TEST_PRELOAD:+$TEST_PRELOAD:}
nomemory=$build/nomemory.so
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
[ -e "$library" ] || skip_all "no $library"
[ -e "$nomemory" ] || skip_all "no $nomemory"
find_gently
clean_environment
make_scratch
mkdir "$tmp/counts"

launch() { # output, options of mpiexec...; the program is $program $args on $n ranks
    out=$1
    shift
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" $gently "$mpiexec" -n "$n" "$@" "$build/$program" $args \
        >"$out.out" 2>"$out.err" </dev/null
    code=$?
}

under() { # first allocation that fails, how many, rank
    set +f
    rm -f "$tmp"/counts/*
    set -f
    # shellcheck disable=SC2086
    launch "$tmp/now" -genv LD_PRELOAD "$first$library:$nomemory:$yield" $settings \
        -genv NOMEMORY_AT "$1" -genv NOMEMORY_FOR "$2" -genv NOMEMORY_RANK "$3" \
        -genv NOMEMORY_OUT "$tmp/counts"
}

largest() { # column: the largest number of a rank
    set +f
    cat "$tmp"/counts/* 2>/dev/null | awk -v k="$1" '$k > most { most = $k } END { print most + 0 }'
    set -f
}

# By a signal (9: the launcher's, after another rank has ended), or by timeout.
is_killed() {
    [ "$code" -eq 124 ] || [ "$code" -eq 137 ] ||
        grep -Eq 'EXIT STRING: (Segm|Abort|Bus|Float|Illegal)|Assertion' "$tmp/now.out" "$tmp/now.err"
}

# By an error of MPI's; Hydra 4.2.1 sometimes exits with 0 then.
has_aborted() {
    [ "$code" -ne 0 ] || grep -q 'Abort([0-9]*)' "$tmp/now.err"
}

judge() { # description
    if [ "$code" -eq "$ref_code" ] && cmp -s "$tmp/ref.out" "$tmp/now.out"; then
        same=$((same + 1))
        ok "$1"
    elif ! is_killed && has_aborted && grep -Eq 'no memory|Unable to allocate memory' "$tmp/now.err"; then
        ok "$1: ends with an error"
    else
        not_ok "$1"
        say "exit code $code"
        say "$(diff "$tmp/ref.out" "$tmp/now.out" | head -n 5)"
        say "$(head -n 5 "$tmp/now.err")"
    fi
}

test_line() {
    what="$program $args"
    echo "$what" | grep -Eq -e "$filter" || return
    launch "$tmp/ref" -genv LD_PRELOAD "$yield"
    ref_code=$code
    under 0 1 -1
    n_allocations=$(largest 1)
    if [ "$code" -ne "$ref_code" ] || [ "$n_allocations" -lt 20 ]; then
        not_ok "$what: exit code $code, $n_allocations allocations"
        return
    fi
    k=0 failed=0 same=0 n_those=$((n_allocations - 1))
    while [ $k -lt "$n_runs" ]; do
        # somewhere in the k-th part of all, so that every run of this script is the same
        at=$((1 + (k * n_those + (seed * 7919 + k * 104729) % n_those) / n_runs))
        case $(((k + seed) % 4)) in
            0) rank=-1 follow=1 ;;
            1) rank=$((k % n)) follow=1 ;;
            2) rank=$((k % n)) follow=30 ;;
            3) rank=-1 follow=1000000000 ;;
        esac
        under $at $follow "$rank"
        failed=$((failed + $(largest 2)))
        judge "$what, allocation $at of $n_allocations, $follow, rank $rank"
        k=$((k + 1))
    done
    check "$what: allocations failed" test $failed -gt 0
    check "$what: some runs end as without the library" test $same -gt 0
}

trim() { # the words of a column
    # shellcheck disable=SC2086
    echo $1
}

echo "TAP version 13"
sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$list" >"$tmp/list"
while IFS='|' read -r program n changes args <&3; do
    program=$(trim "$program") n=$(trim "$n") args=$(trim "$args")
    settings="-genv CARPOOL_MODE force -genv CARPOOL_RANKS_PER_NODE 3"
    for change in $(trim "$changes"); do
        settings="$settings -genv CARPOOL_${change%%=*} ${change#*=}"
    done
    test_line
    seed=$((seed + 1))
done 3<"$tmp/list"
done_testing
