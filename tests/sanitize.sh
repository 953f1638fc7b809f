#!/bin/sh
# The library, the planner and the unit tests with AddressSanitizer and UndefinedBehaviorSanitizer:
# builds in build/sanitize, runs the unit tests and a selection of the MPI tests. Whatever a sanitizer
# reports ends the program and is a failure. What AddressSanitizer says stays in
# build/sanitize/reports, the rest is in the logs.
#
# Leaks are not looked for: MPICH has some. The parsers have a fuzzer of their own with sanitizers, in
# make check (fuzz/run-parsers.sh). run-memory.sh is not here: its nomemory.so and AddressSanitizer
# both want to be malloc.
#
#   tests/sanitize.sh
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(pwd)/build/sanitize
# shellcheck source=tests/build.sh disable=SC1091
. tests/build.sh
mpi_seconds=180 # everything is slower
asan=$(gcc -print-file-name=libasan.so)
[ -e "$asan" ] || { echo "gcc has no sanitizers"; echo "0 passed, 0 failed, 1 skipped"; exit 1; }
asan=$(readlink -f "$asan")
reports=$build/reports

collect() { # what ran: fails when there are reports, and puts them aside
    found=$(find "$reports" -maxdepth 1 -type f -name '*san.*')
    if [ -z "$found" ]; then
        printf 'ok\t%s: no report of a sanitizer\n' "$1" >>results.txt
        return
    fi
    mkdir -p "$reports/$1"
    mv "$reports"/*san.* "$reports/$1"
    grep -ahE 'ERROR: |runtime error: ' "$reports/$1"/* | sed 's/^==[0-9]*==//' |
        sort | uniq -c | sort -rn | head -n 20
    printf 'not ok\t%s: reports of sanitizers, in %s\n' "$1" "$reports/$1" >>results.txt
}

prepare --without-simgrid CFLAGS="-O1 -g -Wno-error -fno-omit-frame-pointer \
-fsanitize=address,undefined -fno-sanitize-recover=all"
rm -rf "$reports"
mkdir "$reports"
ASAN_OPTIONS=detect_leaks=0:log_path=$reports/asan
UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/ubsan
export ASAN_OPTIONS UBSAN_OPTIONS
step "make"
build_in planner make.log
build_in shim make.log
build_in array make.log
build_in cli make.log
# what is preloaded beside the library needs no sanitizers
build_in bench make.log CFLAGS=-O1 libyield.la
# shellcheck disable=SC2016
run_unit -C tests TESTS='$(check_PROGRAMS)'
collect unit
# recreate watches its memory, which AddressSanitizer keeps after free
shorten_matrix "$root/tests/mpi/testlist" | grep -v '^recreate ' >matrix.txt
sed -e '/^#/d' -e '/^$/d' "$root/tests/promise/cases" | awk 'NR % 2 == 1' >promise.txt
MATRIX=$build/matrix.txt PROMISE=$build/promise.txt
TEST_PRELOAD=$asan # it must come first
export TEST_PRELOAD
# what is looked at is the library, not the programs, which are linked with parts that have sanitizers
run_mpi CFLAGS="-O1 -g" LDFLAGS=-fsanitize=address,undefined
collect mpi
show_results
