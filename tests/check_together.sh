#!/bin/sh
# Planning together (bench/plan_model): what MPI takes is the same by whichever strategy's records it is counted,
# of which some tell of several messages.
#
#   check_together.sh       with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
model=$top_builddir/bench/plan_model
[ -x "$model" ] || skip_all "no $model"
clean_environment

direct() { # ranks, family, strategy: what MPI takes, modelled
    "$model" "$1" "$top_srcdir/bench/sim/edr.machine" --family "$2" --strategy "$3" --json |
        sed 's/.*"direct_modelled_us": \([0-9.]*\).*/\1/'
}

for ranks in 48 96; do
    for family in random powerlaw; do
        first=$(direct $ranks $family vpt:2) others=
        for strategy in vpt:3 vpt:5 grid:far:increase grid:decrease; do
            others="$others $(direct $ranks $family $strategy)"
        done
        check "$ranks ranks, $family: MPI takes $first us, counted by any" \
            [ "${first:-none}$others" = "$first $first $first $first $first" ]
    done
done
done_testing
