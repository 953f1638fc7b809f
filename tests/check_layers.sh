#!/bin/sh
# The rooms of the shim and of the planner, held by the build (README.md there): a file includes only
# headers, and calls only functions, of its own room and of those below; no room calls back up, and
# within a room no files call each other in a circle. So the files can be put in an order in which each
# calls only earlier ones. What the shim must hear of from below goes by shim/state/hooks.h.
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
cat >"$tmp/shim.rooms" <<'END'
abi
tables
base
bind
state
wait
meet
report
carry
plan
exchange pt2pt
calls
END
# cli/, which lies beside the planner's folder, is the room above all of its rooms; cli/host is below it.
cat >"$tmp/planner.rooms" <<'END'
base
pattern
machine
plan
grid
search share
strategies
place keep
host
cli
END

rooms() {
    tr ' ' '\n' <"$tmp/$tree.rooms"
}

directory() { # room
    case $1 in
        cli) echo cli ;;
        host) echo cli/host ;;
        *) echo "$tree/$1" ;;
    esac
}

# ROOM/FILE.c of all sources.
sources() {
    rooms | while read -r room; do
        (cd "$top_srcdir/$(directory "$room")" && ls) | sed -n "s#.*\.c\$#$room/&#p"
    done
}

# ROOM/FILE ROOM/HEADER of every include. A header that lies in no room (the planner's are installed)
# is of the room that has its source file.
includes() {
    # shellcheck disable=SC2046
    (cd "$top_srcdir" && grep -roE "^#include \"(($tree|cli)/)?[a-z0-9_/]*\.(h|def)\"" \
        --include='*.[ch]' --include='*.def' "$tree" $(rooms | grep -x cli)) |
        sed -e 's/:#include "/ /' -e 's/"$//' -e "s#\(^\| \)$tree/#\1#g" -e 's#\(^\| \)cli/host/#\1host/#g' |
        awk 'FNR == NR { file = $1; sub(/.*\//, "", file); sub(/c$/, "h", file); at[file] = $1; next }
            { for (k = 1; k <= 2; k++) if ($k !~ /\//) { $k = at[$k]; sub(/c$/, "h", $k) } }
            $1 != "" && $2 ~ "^(" rooms ")/"' "rooms=$(rooms | paste -sd '|')|cli" "$tmp/sources" -
}

# ROOM/FILE ROOM/FILE SYMBOL of every call between files, by the objects of the library or program.
# cpl_real_ functions are MPI's (tables/functions.h).
calls() {
    while read -r name; do
        file=${name##*/}
        file=${file%.c}
        case $name in
            cli/*) object=$top_builddir/cli/carpool-$file.o ;;
            host/*) object=$top_builddir/cli/host/carpool-$file.o ;;
            *) object=$top_builddir/$tree/${name%/*}/.libs/$file.o ;;
        esac
        [ -e "$object" ] || { echo "MISSING $object" >&2; continue; }
        nm "$object" | awk -v file="${name%.c}" '
            $(NF - 1) ~ /^[TDBRV]$/ { print "D", file, $NF }
            $(NF - 1) == "U" && $NF ~ /^(cpl|MPI)_/ && $NF !~ /^cpl_real_/ { print "U", file, $NF }'
    done <"$tmp/sources" >"$tmp/symbols"
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
        !(to in level) { print $1 " -> " $2; next }
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

for tree in shim planner; do
    awk '{ for (k = 1; k <= NF; k++) print $k, NR }' "$tmp/$tree.rooms" >"$tmp/levels"
    sources >"$tmp/sources"
    includes >"$tmp/includes"
    calls >"$tmp/calls" 2>"$tmp/missing"
    [ "$verbose" != -v ] || awk '{ split($1, a, "/"); split($2, b, "/") } a[1] == b[1]' "$tmp/calls" | sort
    awk '{ print $1, $2 }' "$tmp/calls" | sort -u >"$tmp/pairs"
    none "$tree: every source file is built" "$(cat "$tmp/missing")"
    none "$tree: every room is known, every source file in one" "$(
        cd "$top_srcdir/$tree" && find . -mindepth 1 -maxdepth 1 '(' -type d -o -name '*.c' ')' ! -name '.*' |
        sed 's#^\./##' | while read -r room; do grep -q "^$room " "$tmp/levels" || echo "$room"; done)"
    none "$tree: no header of a room above is included" "$(upward <"$tmp/includes")"
    none "$tree: no function of a room above is called" "$(upward <"$tmp/calls")"
    none "$tree: no files call each other in a circle" "$(circles <"$tmp/pairs")"
    none "$tree: no room has more than 25 files" "$(sed 's#/.*##' "$tmp/sources" | uniq -c |
        awk '$1 > 25 { print $2 " has " $1 }')"
done
none "no struct of the shim has more than 20 members" "$(large_structs)"
none "the planner includes nothing of another folder" "$(
    cd "$top_srcdir" && grep -rnE '#include "(\.\./)*(array|bench|calibrate|cli|shim|tests)/' planner)"
none "the command is included by nothing below" "$(
    cd "$top_srcdir" && grep -rnE '#include "(\.\./)*cli/' array calibrate planner shim)"
done_testing
