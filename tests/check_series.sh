#!/bin/sh
# Persistent requests that are started together while their communicator rests: nothing changes, and
# their messages are counted right, so that the ranks come to plan them. What is not received yet keeps
# them from it. And a neighborhood collective that is carried after a short search is searched fully,
# without a report, too, though most carried calls are not timed then.
#
#   check_series.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
mpiexec=${MPIEXEC:-mpiexec.hydra}
series=$top_builddir/tests/mpi/series
neighbors=$top_builddir/bench/neighbors
yield=$top_builddir/bench/.libs/libyield.so
library=$top_builddir/shim/.libs/libcarpool.so
for file in "$series" "$neighbors" "$yield" "$library"; do
    [ -e "$file" ] || skip_all "no $file"
done
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
clean_environment
unset CARPOOL_LEARN # so that they wait until planning pays
make_scratch

# The account allows 2%: the ranks look away at an early collective, and learn again after a second or two.
run() { # arguments; leaves out, report and $code
    timeout -k 5 100 "$mpiexec" -n 5 -genv LD_PRELOAD "$library:$yield" -genv CARPOOL_MODE auto -genv CARPOOL_COST 2 \
        -genv CARPOOL_REPORT "$tmp/report" -genv CARPOOL_VERBOSE info "$series" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
}
for seed in 1 2; do
    run --seconds 5 --seed $seed
    check "seed $seed: exit status" test $code -eq 0
    [ $code -eq 0 ] || say "$(cat "$tmp/out" "$tmp/err")"
    check "seed $seed: the ranks looked away, and learned again" grep -q 'learned about again' "$tmp/err"
    check "seed $seed: they planned" grep -Eq 'recurring exchanges, [0-9]+ rerouted' "$tmp/err"
done
run --seconds 8 --unreceived
check "unreceived: exit status" test $code -eq 0
check "unreceived: the ranks learned again" grep -q 'learned about again' "$tmp/err"
check "unreceived: they did not plan" sh -c "! grep -q 'recurring exchanges' '$tmp/err'"
check "unreceived: told" grep -q 'some message had no receive yet' "$tmp/report"

# A search gives two plans, each told in a line. Where the machine is slow at the wrong time the first one is a full one.
searched=0
for attempt in 1 2 3; do
    [ "$searched" -lt 4 ] || break
    timeout -k 5 100 "$mpiexec" -n 16 -genv LD_PRELOAD "$library:$yield" -genv CARPOOL_COST 20 -genv CARPOOL_VERBOSE info \
        "$neighbors" --learn $((3 * attempt)) >"$tmp/out" 2>"$tmp/err" </dev/null
    searched=$(grep -c ' info plan: ' "$tmp/err")
done
check "a full search follows a short one, without a report" test "$searched" -ge 4

done_testing
