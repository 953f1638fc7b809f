#!/bin/sh
# Reorganised conjugate gradients (bench/cg): the halo's messages ride in the reduction's log2(ranks) steps, and the
# residuals are the same to the bit. Each rank is a node of its own: in one memory the ranks have reductions without messages.
#
#   check_embedding.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
mpiexec=${MPIEXEC:-mpiexec.hydra}
cg=$top_builddir/bench/cg
yield=$top_builddir/bench/.libs/libyield.so
library=$top_builddir/shim/.libs/libcarpool.so
for file in "$cg" "$yield" "$library"; do
    [ -e "$file" ] || skip_all "no $file"
done
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
clean_environment
make_scratch
cd "$tmp" || exit 2
"$top_builddir/bench/generate" fe --nodes-per-side 10 >m.mtx 2>/dev/null || skip_all "no matrix"

run() { # ranks, preload, form, halo, mpiexec's options...; leaves history, and report.json
    n=$1 preload=$2 form=$3 halo=$4
    shift 4
    timeout -k 5 60 "$mpiexec" -n "$n" -genv LD_PRELOAD "$preload" "$@" "$cg" --form "$form" \
        --halo "$halo" --iterations 50 --solves 4 --history m.mtx >out 2>err </dev/null
    code=$?
    grep '^residual' out >history
}
member() { # key: its value in the pattern whose messages rode
    awk -v key="\"$1\":" '
        /"in_reductions"/ { inside = 1 }
        inside && $1 == key { gsub(/,/, "", $2); print $2; exit }' report.json
}

run 8 "$yield" reorganised messages
check "the program runs" test -s history
mv history reference
# 12 ranks: eight corners, and each of the first four is shared by two ranks
for setting in 8:3 12:4; do
    n=${setting%:*} most=${setting#*:}
    if [ "$n" != 8 ]; then
        run "$n" "$yield" reorganised messages
        mv history reference
    fi
    run "$n" "$library:$yield" reorganised messages -genv CARPOOL_MODE force -genv CARPOOL_RANKS_PER_NODE 1 \
        -genv CARPOOL_REPORT "$tmp/report.json"
    check "$n ranks: the program runs with the library" test $code -eq 0
    check "$n ranks: the residuals are the same" cmp reference history
    check "$n ranks: $most messages a rank and iteration" test "$(member sends_max_per_reduction)" = "$most.0"
    check "$n ranks: what was sent rode in them" test "$(member messages_carried)" -gt 1000
done
# a nonblocking neighborhood collective beside the reduction goes by a plan
run 8 "$yield" reorganised neighbor
mv history reference
run 8 "$library:$yield" reorganised neighbor -genv CARPOOL_MODE force -genv CARPOOL_RANKS_PER_NODE 1 \
    -genv CARPOOL_REPORT "$tmp/report.json"
check "neighborhood collectives: the residuals are the same" cmp reference history
check "neighborhood collectives: they were planned" grep -q '"calls_planned": [1-9]' report.json
done_testing
