#!/bin/sh
# Ranks of a node that cannot share memory, though MPI says they do (noshare.c): all go on by MPI, with
# the results of MPI, and one line says why. And ranks that are killed: nothing of theirs stays.
#
#   run-noshare.sh BUILDDIR LIBCARPOOL YIELDLIB
#
# BUILDDIR holds the programs and noshare.so, YIELDLIB is preloaded in all runs (waiting ranks give
# way). TEST_TIMEOUT is the seconds of a run, TEST_PRELOAD is preloaded before all else, MPIEXEC is
# the launcher. Writes TAP; exits with 1 when a test failed.
set -u
# shellcheck source=tests/tap.sh disable=SC1091
. "$(dirname "$0")/../tap.sh"
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB" >&2; exit 2; }
build=$1 library=$2 yield=$3
limit=${TEST_TIMEOUT:-60}
mpiexec=${MPIEXEC:-mpiexec.hydra}
first=${TEST_PRELOAD:+$TEST_PRELOAD:}
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
[ -e "$library" ] || skip_all "no $library"
[ -e "$build/noshare.so" ] || skip_all "no $build/noshare.so"
find_gently
clean_environment
make_scratch

launch() { # output, ranks, options of mpiexec..., the program is $program
    out=$tmp/$1 n=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" $gently "$mpiexec" -n "$n" "$@" "$build/"$program >"$out.out" 2>"$out.err" </dev/null
    code=$?
}

under() { # ranks, ranks per node, settings...
    n=$1 per_node=$2
    shift 2
    launch now "$n" -genv LD_PRELOAD "$first$library:$build/noshare.so:$yield" -genv CARPOOL_MODE force \
        -genv CARPOOL_STRATEGY direct -genv CARPOOL_RANKS_PER_NODE "$per_node" "$@"
}

# Memory whose maker has ended.
left_behind() {
    for memory in /dev/shm/carpool-*; do
        [ -e "$memory" ] || continue
        maker=${memory#/dev/shm/carpool-}
        [ -d "/proc/${maker%%-*}" ] || echo "$memory"
    done
}

cannot() { # what the line says, ranks, ranks per node, NOSHARE, rank
    what="$program, $2 ranks, $3 a node, $4 fails on rank $5"
    launch ref "$2" -genv LD_PRELOAD "$yield"
    before=$(left_behind)
    under "$2" "$3" -genv NOSHARE "$4" -genv NOSHARE_RANK "$5"
    why=
    [ $code -eq 0 ] || why="exit code $code"
    cmp -s "$tmp/ref.out" "$tmp/now.out" || why="$why, the output differs"
    [ "$(wc -l <"$tmp/now.err")" -eq 1 ] && grep -q "warn lanes: .*$1.*CARPOOL_LANES=off" "$tmp/now.err" ||
        why="$why, not one line on stderr: $(head -n 3 "$tmp/now.err")"
    [ "$(left_behind)" = "$before" ] || why="$why, left: $(left_behind)"
    none "$what" "$why"
}

for program in "neighbors --graph mix --graphs 9 --calls 6 --large" "ahead --calls 60" \
    "exchange --shape waitall --iterations 40"; do
    cannot "no room for shared memory: No space left" 6 16 make 0
    cannot "cannot open the node's shared memory: Permission denied" 6 16 attach 4
    cannot "cannot open the node's shared memory: Permission denied" 8 3 attach 4
    cannot "cannot open the node's shared memory: Permission denied" 6 3 attach -1
done

for rank in 0 3; do
    before=$(left_behind)
    program="ahead --calls 60 --killed $rank"
    under 4 16
    check "rank $rank is killed: the run ends" test $code -ne 0 -a $code -ne 124
    check "rank $rank is killed: nothing stays" test "$(left_behind)" = "$before"
done
done_testing
