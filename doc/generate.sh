#!/bin/sh
# Writes the rows of tables into the man pages: settings (shim/base/settings.def) into carpool(7) between
# "begin settings for users" (and "for tests") and "end settings", strategies (the struct cpl_strategy of
# each row of planner/strategies/strategies.def) into carpool(1) between "begin strategies" and "end
# strategies".
#
#   sh doc/generate.sh             after every change of such a row
#   sh doc/generate.sh --check     changes nothing, fails when a document is out of date
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
new=$(mktemp)
trap 'rm -f "$new"' EXIT
settings=$top/shim/base/settings.def
strategies=$(sed -n "s#^[A-Z]*(\([a-z0-9_]*\))\$#$top/planner/strategies/strategy_\1.c#p" \
    "$top/planner/strategies/strategies.def")

# The words that settings.def takes from a table: "ring", "doubling"
allgather_words=$(sed -n 's/^ *ROW([A-Z_]*, \([a-z_]*\)).*/, "\1"/p' "$top/planner/place/allgather.h" |
    tr -d '\n' | sed 's/^, //')

# The document with the rows as they are in the tables.
with_rows() { # document
    # shellcheck disable=SC2086
    awk -v allgather_words="$allgather_words" '
        function roff(text) {
            gsub(/-/, "\\-", text)
            gsub(/\047/, "\\(aq", text)
            return text
        }

        function man_setting(name, values, preset, doc,    about) {
            about = values (values == "" || preset == "" ? "" : "; ")
            about = about (preset == "" ? "" : "default " preset)
            gsub(/`[^`]*`/, "\\fB&\\fP", doc)
            gsub(/`/, "", doc)
            gsub(/\. /, ".\n", doc)
            return roff(".TP\n.BR CARPOOL_" name (about == "" ? "" : " \" (" about ")\"") "\n" doc "\n")
        }

        # "SETTING(field, NAME, FOR, TYPE(VALUES), "DEFAULT", "DOC")": all in one line.
        function add_setting(row,    n, column, string, values, group) {
            sub(/CPL_ALLGATHER_WORDS/, allgather_words, row)
            split(row, column, ", ")
            group = "settings for " tolower(column[3])
            if (match(row, /\([^()]*\), "/))
                values = substr(row, RSTART + 1, RLENGTH - 5)
            if (gsub(/"/, "", values) == 0)
                sub(/, /, " to ", values)
            n = split(row, string, "\"")
            rows[group] = rows[group] man_setting(column[2], values, string[n - 3], string[n - 1])
        }

        function string_of(row, member) { # ".member = "...", of the row in one line; or nothing
            if (!match(row, "[.]" member " = \"[^\"]*\""))
                return ""
            row = substr(row, RSTART, RLENGTH - 1)
            sub(/.*"/, "", row)
            return row
        }

        function add_strategy(row,    form, doc) {
            form = string_of(row, "name") string_of(row, "parameter")
            doc = string_of(row, "doc")
            gsub(/[A-Z]+/, "\\fI&\\fP", form)
            rows["strategies"] = rows["strategies"] \
                roff(".TP\n.B " form "\n" toupper(substr(doc, 1, 1)) substr(doc, 2) ".\n")
        }

        table == "settings" && /^SETTING\(/ { row = "" }
        table == "strategies" && /^const struct cpl_strategy cpl_strategy_[a-z0-9_]* = {/ { row = "" }
        table != "" { row = row $0 }
        table == "settings" && /"\)$/ {
            gsub(/" +"/, "", row)
            gsub(/, +/, ", ", row)
            add_setting(row)
        }
        table == "strategies" && row ~ /^const / && /};$/ {
            gsub(/" +"/, "", row)
            add_strategy(row)
            row = ""
        }
        table != "" { next }

        / end (settings|strategies)/ { in_list = 0 }
        !in_list { print }
        / begin (settings for|strategies)/ {
            in_list = 1
            sub(/.* begin /, "")
            printf "%s", rows[$0]
        }
    ' table=settings "$settings" table=strategies $strategies table= "$1"
}

update() { # document, --check or nothing
    with_rows "$top/$1" >"$new"
    if cmp -s "$new" "$top/$1"; then
        return
    elif [ "$2" = --check ]; then
        echo "$1 is not as the tables of settings and strategies say: run sh doc/generate.sh" >&2
        exit 1
    else
        cat "$new" >"$top/$1"
    fi
}

update doc/carpool.1 "${1:-}"
update doc/carpool.7 "${1:-}"
