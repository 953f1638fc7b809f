#!/bin/sh
# The rooms of the shim, held by the build (shim/README.md): a file includes only headers, and calls
# only functions, of its own room and of those below; no room calls back up, and within a room no
# files call each other in a circle. So the files can be put in an order in which each calls only
# earlier ones. What must be heard of from below goes by shim/state/hooks.h.
#
#   check_layers.sh [-v]   with top_srcdir and top_builddir in the environment; -v lists every call
#                          between two files of one room
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
LC_ALL=C
export LC_ALL
make_scratch
verbose=${1:-}

# Lowest first; rooms of one line are beside each other, and neither may use the other.
cat >"$tmp/rooms" <<'END'
tables
base
state
wait
meet
report
carry
plan
exchange pt2pt
calls
END

awk '{ for (k = 1; k <= NF; k++) print $k, NR }' "$tmp/rooms" >"$tmp/levels"

# ROOM/FILE ROOM/HEADER of every include between rooms.
includes() {
    (cd "$top_srcdir/shim" && grep -oE '^#include "shim/[a-z0-9_/]*\.(h|def)"' -r . --include='*.[ch]' --include='*.def') |
        sed -e 's#^\./##' -e 's#:\#include "shim/# #' -e 's#"$##'
}

# ROOM/FILE ROOM/FILE SYMBOL of every call between files, by the object files of the library.
# cpl_real_ functions are MPI's (calls/f08.h).
calls() {
    for source in "$top_srcdir"/shim/*/*.c; do
        name=${source#"$top_srcdir"/shim/}
        object=$top_builddir/shim/${name%/*}/.libs/$(basename "$name" .c).o
        [ -e "$object" ] || { echo "MISSING $object" >&2; continue; }
        nm "$object" | awk -v file="${name%.c}" '
            $(NF - 1) ~ /^[TDBRV]$/ { print "D", file, $NF }
            $(NF - 1) == "U" && $NF ~ /^(cpl|MPI)_/ && $NF !~ /^cpl_real_/ { print "U", file, $NF }'
    done >"$tmp/symbols"
    awk '$1 == "D" { at[$3] = $2 }
        $1 == "U" { n++; file[n] = $2; symbol[n] = $3 }
        END { for (k = 1; k <= n; k++)
            if (symbol[k] in at && at[symbol[k]] != file[k]) print file[k], at[symbol[k]], symbol[k] }' "$tmp/symbols"
}

# Of pairs FROM TO [WHAT]: those that go up, or to the room beside.
upward() {
    awk 'FNR == NR { level[$1] = $2; next }
        { from = $1; to = $2; sub(/\/.*/, "", from); sub(/\/.*/, "", to) }
        !(from in level) { print from " is in no line of rooms"; next }
        from != to && level[to] >= level[from] { print $1 " -> " $2 " " $3 }' "$tmp/levels" - | sort -u
}

# Files that are left when those that call no other one that is left are taken away, again and again.
circles() {
    awk '{ calls[$1 " " $2]; files[$1]; files[$2] }
        END {
            do {
                n = 0
                for (c in calls) { split(c, f, " "); busy[f[1]]; called[f[2]] }
                for (c in calls) {
                    split(c, f, " ")
                    if (!(f[2] in busy) || !(f[1] in called)) { delete calls[c]; n++ }
                }
                split("", busy); split("", called)
            } while (n > 0)
            for (c in calls) print c
        }' | sort
}

# Structs with more members than one can keep in mind.
large_structs() {
    cat "$top_srcdir"/shim/*/*.[ch] | awk '
        { text = $0 }
        in_comment { if (!sub(/.*\*\//, "", text)) next; in_comment = 0 }
        { gsub(/\/\*[^*]*\*\//, "", text) }
        /\/\*/ && sub(/\/\*.*/, "", text) { in_comment = 1 }
        name == "" && text ~ /^struct [a-z_0-9]+ [{] *$/ { split(text, word, " "); name = word[2]; n = 0; next }
        name != "" && text ~ /^}/ { if (n > 20) print name " has " n " members"; name = ""; next }
        name != "" {
            member = member text
            if (text !~ /;/) next
            while (gsub(/[(][^()]*[)]/, "", member));
            n += gsub(/[;,]/, "", member)
            member = ""
        }'
}

includes >"$tmp/includes"
calls >"$tmp/calls" 2>"$tmp/missing"
[ "$verbose" != -v ] || awk '{ split($1, a, "/"); split($2, b, "/") } a[1] == b[1]' "$tmp/calls" | sort
none "every source file of the shim is in the library" "$(cat "$tmp/missing")"
none "every room is known" "$(ls "$top_srcdir/shim" | grep -vE '^(Makefile\..*|README\.md)$' |
    while read -r room; do grep -q "^$room " "$tmp/levels" || echo "$room"; done)"
none "no header of a room above is included" "$(upward <"$tmp/includes")"
none "no function of a room above is called" "$(upward <"$tmp/calls")"
none "no files call each other in a circle" "$(circles <"$tmp/calls")"
none "no room has more than 25 files" "$(cd "$top_srcdir/shim" && for room in */; do
    n=$(ls "$room" | grep -c '\.c$'); [ "$n" -le 25 ] || echo "$room has $n"; done)"
none "no struct has more than 20 members" "$(large_structs)"
done_testing
