#!/bin/sh
# How many lines the tests reach: builds in build/coverage without optimization and with gcc's
# --coverage, runs unit tests, checks and a selection of the MPI tests, and prints the lines reached
# of each room of shim/, of shim/ and of planner/. What is not reached is in
# build/coverage/uncovered.txt, the figures of all files in files.txt.
#
#   tests/coverage.sh [figures]      figures: of the last run
#
# A source that is compiled several times, for the library and for unit tests, counts once: a line is
# reached when it is in any of these objects. Ranks that are killed, or that abort, count nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(pwd)/build/coverage
# shellcheck source=tests/build.sh disable=SC1091
. tests/build.sh
mpi_seconds=180 # runs are slower without optimization

# gcov's text of all objects of a directory, merged: reached lines, lines, file; and uncovered.txt.
count_lines() { # directories...
    find "$@" -name '*.gcno' -print | while read -r notes; do
        gcov -t -o "${notes%.gcno}.o" "$notes" 2>>gcov.err
    done | awk -v root="$root/" -v missing=uncovered.txt '
        /^ *-: *0:Source:/ {
            file = $0
            sub(/^ *-: *0:Source:/, "", file)
            if (index(file, root) == 1) file = substr(file, length(root) + 1)
            gsub(/^(\.\.\/)+/, "", file)
            next
        }
        file !~ /^(shim|planner)\// || /^ *-:/ { next }
        {
            split($0, part, ":")
            line = part[2] + 0
            gsub(/ /, "", part[1])
            if (line == 0) next
            key = file SUBSEP line
            if (!(key in text)) {
                text[key] = substr($0, length(part[1]) + 1)
                sub(/^[^:]*:[^:]*:/, "", text[key])
                if (!(file in n)) order[++n_files] = file
                n[file]++
                if (line > last[file]) last[file] = line
            }
            if (part[1] ~ /^[0-9]/ && !(key in seen)) { seen[key] = 1; reached[file]++ }
        }
        END {
            for (f = 1; f <= n_files; f++) {
                file = order[f]
                print reached[file] + 0, n[file], file
                for (line = 1; line <= last[file]; line++) {
                    key = file SUBSEP line
                    if ((key in text) && !(key in seen)) print file ":" line ":" text[key] >missing
                }
            }
        }'
}

figures() { # of files.txt: rooms of shim, shim, planner
    awk '
        function add(what) { if (!(what in n)) order[++n_whats] = what; reached[what] += $1; n[what] += $2 }
        { split($3, part, "/") }
        part[1] == "shim" { add("shim/" part[2]) }
        { total[part[1]] += $1; lines[part[1]] += $2 }
        function show(what, r, l) { printf "   %-14s %6d of %6d lines, %5.1f %%\n", what, r, l, l ? 100 * r / l : 0 }
        END {
            for (k = 1; k <= n_whats; k++) show(order[k], reached[order[k]], n[order[k]])
            show("shim", total["shim"], lines["shim"])
            show("planner", total["planner"], lines["planner"])
        }' files.txt
}

if [ "${1:-}" != figures ]; then
    # atomic, because of the helper thread; warnings are of other builds
    prepare --without-simgrid CFLAGS="-O0 -g -Wno-error --coverage -fprofile-update=atomic" LIBS=-lgcov
    find . -name '*.gcda' -delete
    step "make"
    build_in . make.log
    build_in tests/mpi mpi-make.log check
    # of the checks those that run the library or the command
    GCOV_ERROR_FILE=$build/gcov-run.err # not among what programs print
    export GCOV_ERROR_FILE
    # shellcheck disable=SC2016
    run_unit TESTS='$(check_PROGRAMS) check_command.sh check_plan_cache.sh check_profile.sh'
    find . -name '*.gcda' | head -n 1 | grep -q . || give_up "nothing was counted" check.log
    shorten_matrix "$root/tests/mpi/testlist" >matrix.txt
    sed -e '/^#/d' -e '/^$/d' "$root/tests/promise/cases" >promise.txt
    MATRIX=$build/matrix.txt PROMISE=$build/promise.txt
    run_mpi
    step "MPI tests without memory"
    TEST_TIMEOUT=$mpi_seconds run_tap memory.log "$root/tests/mpi/run-memory.sh" \
        "$build/tests/mpi" "$library" "$yield"
else
    cd "$build" || exit 1
fi

step "lines reached"
: >uncovered.txt
: >gcov.err
count_lines shim planner tests | sort -k 3 >files.txt
figures
[ "${1:-}" = figures ] || show_results
