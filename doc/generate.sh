#!/bin/sh
# Writes the rows of tables into README.md, carpool(1) and carpool(7): settings (shim/base/settings.def)
# between "begin settings for users" (and "for tests") and "end settings", strategies (the struct
# cpl_strategy of each row of planner/strategies/strategies.def) between "begin strategies" (and "names
# of strategies") and "end strategies".
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
allgather_words=$(sed -n 's/^ *WAY([A-Z_]*, \([a-z_]*\)).*/, "\1"/p' "$top/planner/place/allgather.h" |
    tr -d '\n' | sed 's/^, //')

# The document with the rows as they are in the tables.
with_rows() { # markdown|man, document
    # shellcheck disable=SC2086
    awk -v format="$1" -v allgather_words="$allgather_words" '
        function roff(text) {
            gsub(/-/, "\\-", text)
            gsub(/\047/, "\\(aq", text)
            return text
        }

        function markdown_setting(name, values, preset, doc) {
            return "| `CARPOOL_" name "` | " values " | " preset " | " doc " |\n"
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
            if (format == "man")
                rows[group] = rows[group] man_setting(column[2], values, string[n - 3], string[n - 1])
            else if (column[3] == "TESTS") # carpool(7) says what they do
                rows[group] = rows[group] "- `CARPOOL_" column[2] "`\n"
            else {
                sub(/\. .*/, ".", string[n - 1])
                rows[group] = rows[group] markdown_setting(column[2], values, string[n - 3], string[n - 1])
            }
        }

        function string_of(row, member) { # ".member = "...", of the row in one line; or nothing
            if (!match(row, "[.]" member " = \"[^\"]*\""))
                return ""
            row = substr(row, RSTART, RLENGTH - 1)
            sub(/.*"/, "", row)
            return row
        }

        function add_strategy(row,    form, doc, examples) {
            form = string_of(row, "name") string_of(row, "parameter")
            doc = string_of(row, "doc")
            if (format == "markdown") {
                examples = string_of(row, "examples")
                gsub(/[^, ]+/, "`&`", examples)
                gsub(/\|/, "\\|", form)
                sub(/; .*/, "", doc) # carpool(7) says more
                rows["strategies"] = rows["strategies"] "| `" form "` | " examples " | " doc " |\n"
                return
            }
            gsub(/[A-Z]+/, "\\fI&\\fP", form)
            rows["strategies"] = rows["strategies"] \
                roff(".TP\n.B " form "\n" toupper(substr(doc, 1, 1)) substr(doc, 2) ".\n")
            rows["names of strategies"] = rows["names of strategies"] roff(".BR " form " ,\n")
        }

        table == "settings" && /^SETTING\(/ { row = "" }
        table == "strategies" && /^const struct cpl_strategy cpl_strategy_[a-z0-9_]* = {$/ { row = "" }
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
        / begin (settings for|strategies|names of strategies)/ {
            in_list = 1
            sub(/.* begin /, "")
            sub(/ *-->/, "")
            if (format == "markdown" && /settings for users/)
                print "| variable | values | default | meaning |\n|---|---|---|---|"
            else if (format == "markdown" && /strategies/)
                print "| strategy | for example | what it does |\n|---|---|---|"
            printf "%s", rows[$0]
        }
    ' table=settings "$settings" table=strategies $strategies table= "$2"
}

update() { # markdown|man, document, --check or nothing
    with_rows "$1" "$top/$2" >"$new"
    if cmp -s "$new" "$top/$2"; then
        return
    elif [ "$3" = --check ]; then
        echo "$2 is not as the tables of settings and strategies say: run sh doc/generate.sh" >&2
        exit 1
    else
        cat "$new" >"$top/$2"
    fi
}

update markdown README.md "${1:-}"
update man doc/carpool.1 "${1:-}"
update man doc/carpool.7 "${1:-}"
