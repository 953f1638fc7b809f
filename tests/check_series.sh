#!/bin/sh
# Persistent requests that are started together while their communicator rests: nothing changes, and
# their messages are counted right, so that the ranks come to plan them. What is not received yet keeps
# them from it.
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
yield=$top_builddir/bench/.libs/libyield.so
library=$top_builddir/shim/.libs/libcarpool.so
for file in "$series" "$yield" "$library"; do
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

done_testing
