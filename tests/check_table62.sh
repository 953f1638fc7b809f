#!/bin/sh
# bench/table62.sh on small patterns: a hub, whose figures are counted by hand here, a pattern that
# bears a name of the thesis's table, and one without messages.
#
#   check_table62.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
[ -x "$top_builddir/cli/carpool" ] || skip_all "no carpool"
clean_environment
make_scratch

# Rank 0 sends to all others. Nobody shares a destination, so Phase I does nothing. In Phase II it
# gives 31 away; of these, one is the next who is given half, and rank 0 sends to it itself again.
awk 'BEGIN { print 64; for (to = 1; to < 64; to++) print 0, to, 1 }' >"$tmp/hub.txt"
awk 'BEGIN { print 64; for (to = 1; to < 64; to++) print 0, to, 1 }' |
    gzip >"$tmp/standin_cbuckle.512.txt.gz"
printf '8\n' >"$tmp/empty.txt"
says() { # description, line
    if grep -Fqx -e "$2" "$tmp/out"; then ok "$1"; else not_ok "$1"; say "$(cat "$tmp/out")"; fi
}
table() { sh "$top_srcdir/bench/table62.sh" "$@" >"$tmp/out" 2>"$tmp/err"; }

check "the hub" table "$top_builddir" -b 5 "$tmp/hub.txt"
says "its send sets" "| hub |  | 0.98, 63 |  | 0.98, 63 |  | 0.98, 30 | 1.08, 5 |"
check "as executed" grep -Fq "| hub | 63 / 1 | 63 / 1 | 30 / 1 | 5 / 2 | 14 / 1 | " "$tmp/out"
check "the thesis's means" grep -Fq "| Phase II, handed on | 26.3 | 30.8 (-84%) |" "$tmp/out"
check "the search's means" grep -q "^| balance:hops=2 |" "$tmp/out"
says "overhead of Phase I" "| hub |  |  | 0.98 | 0.00 |"
check "a name of the thesis's table" table "$top_builddir" -b 5 "$tmp/standin_cbuckle.512.txt.gz"
check "the thesis's figures beside ours" \
    grep -Fq "| standin_cbuckle | 7.43, 62 | 0.98, 63 | 7.36, 41 |" "$tmp/out"
says "the thesis's overhead" "| standin_cbuckle | 7.36 | 0.02 | 0.98 | 0.00 |"
check "no messages" table "$top_builddir" -b 5 "$tmp/empty.txt"
check "no such file is an error" sh -c "! sh '$top_srcdir/bench/table62.sh' '$top_builddir' '$tmp/none' 2>/dev/null"
check "no build directory is an error" sh -c "! sh '$top_srcdir/bench/table62.sh' '$tmp' '$tmp/hub.txt' 2>/dev/null"
done_testing
