#!/bin/sh
# Writes the rows of shim/base/settings.def into README.md and carpool(7), between the lines
# "begin settings for users" (and "for tests") and "end settings".
#
#   sh doc/settings.sh             after every change of settings.def
#   sh doc/settings.sh --check     changes nothing, fails when a document is out of date
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# The document with the rows as they are in settings.def.
with_rows() { # markdown|man, document
    awk -v format="$1" '
        function markdown(name, values, preset, doc) {
            return "| `CARPOOL_" name "` | " values " | " preset " | " doc " |\n"
        }

        function man(name, values, preset, doc,    about, text) {
            about = values (values == "" || preset == "" ? "" : "; ")
            about = about (preset == "" ? "" : "default " preset)
            gsub(/`[^`]*`/, "\\fB&\\fP", doc)
            gsub(/`/, "", doc)
            gsub(/\. /, ".\n", doc)
            text = ".TP\n.BR CARPOOL_" name (about == "" ? "" : " \" (" about ")\"") "\n" doc "\n"
            gsub(/-/, "\\-", text)
            gsub(/\047/, "\\(aq", text)
            return text
        }

        # "SETTING(field, NAME, FOR, TYPE(VALUES), "DEFAULT", "DOC")": all in one line.
        function add(row,    n, column, string, values, group) {
            split(row, column, ", ")
            group = tolower(column[3])
            if (match(row, /\([^()]*\), "/))
                values = substr(row, RSTART + 1, RLENGTH - 5)
            if (gsub(/"/, "", values) == 0)
                sub(/, /, " to ", values)
            n = split(row, string, "\"")
            if (format == "markdown" && group == "tests") # carpool(7) says more
                sub(/\. .*/, ".", string[n - 1])
            if (format == "man")
                rows[group] = rows[group] man(column[2], values, string[n - 3], string[n - 1])
            else
                rows[group] = rows[group] markdown(column[2], values, string[n - 3], string[n - 1])
        }

        FNR == NR && /^SETTING\(/ { row = "" }
        FNR == NR { row = row $0 }
        FNR == NR && /"\)$/ {
            gsub(/" +"/, "", row)
            gsub(/, +/, ", ", row)
            add(row)
        }
        FNR == NR { next }

        / end settings/ { in_list = 0 }
        !in_list { print }
        / begin settings for / {
            in_list = 1
            sub(/.* begin settings for /, "")
            if (format == "markdown")
                print "| variable | values | default | meaning |\n|---|---|---|---|"
            printf "%s", rows[$1]
        }
    ' "$top/shim/base/settings.def" "$2"
}

update() { # markdown|man, document, --check or nothing
    with_rows "$1" "$top/$2" >"$new"
    if cmp -s "$new" "$top/$2"; then
        return
    elif [ "$3" = --check ]; then
        echo "$2 is not as shim/base/settings.def says: run sh doc/settings.sh" >&2
        exit 1
    else
        cat "$new" >"$top/$2"
    fi
}

update markdown README.md "${1:-}"
update man doc/carpool.7 "${1:-}"
