#!/bin/sh
# Planning together (bench/plan_model): what MPI takes is the same by whichever strategy's records it is counted,
# of which some tell of several messages; and what a search in parts finds.
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
figure() { # name, ranks, family, budget
    "$model" "$2" "$top_srcdir/bench/sim/edr.machine" --family "$3" --budget "$4" --json |
        sed "s/.*\"$1\": \"*\([a-z0-9.:-]*\).*/\1/"
}

# Where there is one part it knows all, so that what it finds is no slower; with 1,024 ranks there are two. The slices
# are put together to one plan, which fails where two ranks' do not fit.
for family in stencil random powerlaw band; do
    before=$(figure plan_by_events_us 96 $family 0) after=$(figure plan_by_events_us 96 $family 100)
    check "96 ranks, $family: $before us, searched in parts $after" \
        awk "BEGIN { exit !($before > 0 && $after > 0 && $after <= $before) }"
done
check "1,024 ranks, stencil: the search finds something in two parts" \
    [ "$(figure strategy 1024 stencil 300)" = balance ]
before=$(figure plan_by_events_us 1024 stencil 0) after=$(figure plan_by_events_us 1024 stencil 300)
check "1,024 ranks, stencil: $before us, searched in parts $after" \
    awk "BEGIN { exit !($before > 0 && $after > 0 && $after < $before) }"
done_testing
