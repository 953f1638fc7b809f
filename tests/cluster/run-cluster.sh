#!/bin/sh
# Programs on a cluster of hosts that are namespaces of this machine, over TCP (bench/cluster.sh).
#
#   run-cluster.sh BUILDDIR LIBCARPOOL YIELDLIB HOSTSLIB [FILTER]
#
# BUILDDIR is the tests' folder of a build, with mpi/ and promise/; YIELDLIB and HOSTSLIB are preloaded in all runs
# (waiting ranks give way; bench/hosts.c). FILTER is an extended regular expression for "program arguments"; without one, and without
# TEST_WHOLE=yes, the lines of `cases` with the flag `quick` are run. Each line runs without the library, in mode force,
# and in turn in mode off or auto, and must print the same. A host is cut off for two seconds, too. TEST_TIMEOUT: the seconds of a run.
#
# Where namespaces cannot be made everything is skipped, and so is a line that MPI alone does not get through: it hangs
# over TCP now and then. Writes TAP; exits with 1 when a test failed.
set -uf
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tap.sh disable=SC1091
. "$here/../tap.sh"
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 4 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB HOSTSLIB [FILTER]" >&2; exit 2; }
absolute() { # a file
    echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}
build=$(cd "$1" && pwd) library=$(absolute "$2") yield=$(absolute "$3") hosts=$(absolute "$4")
filter=${5:-.}
limit=${TEST_TIMEOUT:-60}
cluster=$here/../../bench/cluster.sh
[ -e "$library" ] || skip_all "no $library"
clean_environment
find_gently
make_scratch

# A run on the hosts: $tmp/NAME.out and .err; $why, what is wrong with it.
launch() { # name, preload, settings...
    out=$tmp/$1 preload=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 10 "$limit" $gently sh "$cluster" $options -- -n "$n" -genv LD_PRELOAD "$preload$yield:$hosts" "$@" \
        "$build/$program" $args >"$out.out" 2>"$out.err" </dev/null
    code=$?
    why=
    [ $code -eq 0 ] || why=$(exit_text $code "$limit")
    [ $code -eq 0 ]
}

# MPI alone, up to three times.
reference() {
    for try in 1 2 3; do
        launch ref "" && return 0
    done
    return 1
}

under() { # mode
    for try in 1 2; do
        rm -f "$tmp/report.json"
        launch now "$library:" -genv CARPOOL_MODE "$1" -genv CARPOOL_HOLD 20000 -genv CARPOOL_REPORT "$tmp/report.json"
        cmp -s "$tmp/ref.out" "$tmp/now.out" || why="${why:+$why, }output differs"
        # all was printed and the report written: what hung is MPI's end
        [ "$why" = "$(exit_text 124 "$limit")" ] && [ -s "$tmp/report.json" ] || break
        echo "# MPI_Finalize did not end: run again"
    done
    case $1:$flags in force:*planned*)
        grep -q '"calls_planned": [1-9]' "$tmp/report.json" 2>/dev/null || why="${why:+$why, }no call was planned" ;;
    esac
    if [ -z "$why" ]; then
        ok "$what, $1"
        return
    fi
    not_ok "$what, $1: $why"
    say "$(diff "$tmp/ref.out" "$tmp/now.out")"
    say "$(cat "$tmp/now.err")"
}

program=promise/attributes args=plain n=2 options="-H 2"
if ! reference; then
    say "$(cat "$tmp/ref.err")"
    skip_all "MPI programs do not run on hosts of bench/cluster.sh here: $why"
fi

another=off # with which mode the next line is tried, too
grep -v '^#' "$here/cases" | grep '|' >"$tmp/cases"
while IFS='|' read -r program args n options flags; do
    # shellcheck disable=SC2086,SC2116
    program=$(echo $program) args=$(echo $args) n=$(echo $n) options=$(echo $options) flags=$(echo $flags)
    echo "$program $args" | grep -Eq -e "$filter" || continue
    [ "$filter" != . ] || [ "${TEST_WHOLE:-no}" = yes ] || case " $flags " in *" quick "*) ;; *) continue ;; esac
    what="$program $args"
    what="${what% }, $n ranks, $options"
    if ! [ -x "$build/$program" ]; then
        not_ok "$what: not built"
    elif ! reference; then
        skip "$what" "MPI alone: $why"
    else
        under force
        under $another
        case $another in off) another=auto ;; *) another=off ;; esac
    fi
done <"$tmp/cases"

# A host that nobody reaches for two seconds: what is sent meanwhile comes later.
program=mpi/neighbors args="--op alltoallv --graphs 1 --calls 4000 --seed 6" n=8 options="-H 4" flags=
if [ "$filter" = . ]; then
    what="a host that is cut off for two seconds"
    CLUSTER_TURN='sleep 1; down 2; sleep 2; up 2'
    export CLUSTER_TURN
    if reference; then under force; under auto; else skip "$what" "MPI alone: $why"; fi
fi
done_testing
