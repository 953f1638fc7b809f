#!/bin/sh
# What the objects name, and what the sources may not: no MPI in the planner, MPI_ only in the
# array's library, PMPI_ only in the library, which exports the intercepted calls and nothing else; the environment is read in one place.
#
#   check_exports.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
LC_ALL=C
export LC_ALL
make_scratch
planner=$top_builddir/planner
library=$top_builddir/shim/.libs/libcarpool.so

# Without nm there is nothing to say about objects, with it an empty answer is a failure too.
objects() { # description, function that prints what is wrong
    if ! command -v nm >/dev/null 2>&1; then
        skip "$1" "nm is missing"
    elif ! wrong=$("$2"); then
        not_ok "$1"
        say "$wrong"
    else
        none "$1" "$wrong"
    fi
}

planner_mpi() {
    archive=$planner/.libs/libplanner.a
    [ -r "$archive" ] || { echo "no $archive"; return 1; }
    nm "$archive" | grep -q 'T cpl_plan_build' || { echo "nm does not read $archive"; return 1; }
    nm "$archive" | sed 's/.* //' | grep -E '^P?MPI' | sort -u
}

shared_planner_exports() {
    shared=$planner/.libs/libcarpool-planner.so
    [ -r "$shared" ] || { echo "no $shared"; return 1; }
    nm -D --defined-only "$shared" | sed 's/.* //' | sort -u >"$tmp/exported"
    (cd "$top_srcdir/planner" && cat ./*.h) | grep -o 'cpl_[a-z0-9_]*' | sort -u >"$tmp/public"
    comm -23 "$tmp/exported" "$tmp/public"
    [ "$(wc -l <"$tmp/exported")" -gt 60 ] || echo "too few"
    nm -D --undefined-only "$shared" | sed 's/.* //' | grep -E '^P?MPI'
    true
}

library_symbols() { # defined | undefined
    [ -r "$library" ] || { echo "no $library"; return 1; }
    nm -D "--$1-only" "$library" | sed -e 's/.* //' -e 's/@.*//' | sort -u
}

# The functions of the tables, under both names.
exports() {
    printf '#define WORDS(prefix, name, n) ROW prefix##_##name;\n#include "shim/tables/words.h"\n' >"$tmp/rows.c"
    printf '#include "shim/tables/functions.def"\n' >>"$tmp/rows.c"
    ${MPICC:-mpicc.mpich} -E -P -I"$top_srcdir" "$tmp/rows.c" | tr ';' '\n' | sed -n 's/^ *ROW \(.*\)/\1\nP\1/p'
}

library_exports() {
    library_symbols defined >"$tmp/exported" || { cat "$tmp/exported"; return 1; }
    exports | sort -u >"$tmp/wanted"
    comm -23 "$tmp/wanted" "$tmp/exported" | sed 's/$/ is in a table of calls, but not exported/'
    comm -13 "$tmp/wanted" "$tmp/exported" | sed 's/$/ is exported, but in no table of calls/'
}

# The array's library exports what its header has, and its MPI functions go through tools and the
# preloaded library.
array_exports() {
    shared=$top_builddir/array/.libs/libcarpool_array.so
    [ -r "$shared" ] || { echo "no $shared"; return 1; }
    exported=$(nm -D --defined-only "$shared" | sed 's/.* //' | sort)
    declared=$(grep -Eo '^int carpool_array_[a-z]+' "$top_srcdir/array/carpool_array.h" |
        sed 's/int //' | sort)
    [ "$exported" = "$declared" ] || echo "exported: $exported; declared: $declared"
    nm -D --undefined-only "$shared" | sed 's/.* //' | grep -E '^PMPI'
    true
}

# No symbol of MPI: what the library calls is looked up (shim/bind).
library_mpi() {
    for name in libcarpool libcarpool_abi; do
        library=$top_builddir/shim/.libs/$name.so
        used=$(library_symbols undefined) || { echo "$used"; return 1; }
        echo "$used" | grep -E '^P?MPI'
    done
    true
}

# Its own libraries would be in the program's scope, where names of theirs may be the program's.
library_needs() {
    for name in libcarpool libcarpool_abi; do
        readelf -d "$top_builddir/shim/.libs/$name.so" >"$tmp/dynamic" || return 1
        sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' "$tmp/dynamic" | grep -Ev '^(libc|libm)\.so\.6$|^ld-linux' |
            sed "s/^/$name.so needs /"
    done
    true
}

both_builds() {
    library_symbols defined >"$tmp/exported"
    library=$top_builddir/shim/.libs/libcarpool_abi.so
    library_symbols defined | comm -3 "$tmp/exported" -
}

objects "the planner names no MPI symbol" planner_mpi
objects "the planner's shared library exports what installed headers declare, only" shared_planner_exports
objects "the array's library exports what its header declares and calls MPI_ names" array_exports
objects "the library exports the intercepted calls and nothing else" library_exports
objects "the library refers to no symbol of MPI" library_mpi
if [ -d "$top_builddir/shim/linked-in" ]; then
    objects "the library needs libc and libm only" library_needs
else
    skip "the library needs libc and libm only" "no static archives of hwloc, jansson and zlib"
fi
objects "the build for the standard ABI exports the same" both_builds

# A launcher or a shell between LD_PRELOAD and the program gets the library, too.
what="the library can be loaded into a program without MPI"
message=$(LD_PRELOAD=$library LD_BIND_NOW=1 sh -c 'exit 0' 2>&1)
case $message in
    *ASan*|*Sanitizer*) skip "$what" "built with a sanitizer" ;;
    *) none "$what" "$message" ;;
esac

# --- sources
sources() { # directory...
    for directory in "$@"; do
        [ ! -d "$top_srcdir/$directory" ] ||
            find "$top_srcdir/$directory" -name '*.[ch]' -o -name '*.def' | sort
    done
}

uses_of() { # extended regular expression, file...: lines outside comments that match
    pattern=$1
    shift
    grep -nE "(^|[^A-Za-z_0-9])$pattern" "$@" /dev/null | grep -Ev '^[^:]*:[0-9]*: *(/?\*|//)'
}

# Blocking calls that must not be made but by collective.c; start.c, report.c and picture.c run while
# nothing is managed, at the start and at the end.
collectives() {
    sed -n 's/^\(NEIGHBOR\|ALLTOALL\|MOVES\|GATHERS\|ENTERS\|REORDERS\|TRADES\)(\([A-Z][A-Za-z_]*\),.*/\2/p' \
        "$top_srcdir/shim/tables/calls.def" "$top_srcdir/shim/tables/collectives.def"
    printf '%s\n' Waitsome Waitall
}

# shellcheck disable=SC2046
{
    none "getenv only in the carpool command" "$(
        uses_of '(secure_)?getenv *\(' $(sources planner shim calibrate array))"
    none "the shim's own collectives poll" "$(
        uses_of "PMPI_($(collectives | paste -sd '|')) *\(" $(sources shim | grep '\.c$') |
            grep -Ev '/(collective|own|start|picture|report|report_run|wrappers_pt2pt|wrappers_complete)\.c:')"
    none "the planner and the shim do not know the array" "$(
        grep -nE '#include "(\.\./)?(array/|carpool_array)' $(sources planner cli shim calibrate))"
    none "the array includes the planner and itself only" "$(
        grep -nE '#include "(\.\./)?(cli|shim|calibrate|bench|tests)/' $(sources array))"
    none "no mutable globals in the array" "$(
        nm -f sysv "$top_builddir"/array/.libs/*.o 2>/dev/null |
            awk -F '|' '$7 ~ /^(\.data|\.bss|\*COM)/ && $7 !~ /\.rel\.ro/')"
    none "no unsafe string functions" "$(
        uses_of '(sprintf|vsprintf|strcpy|strcat|gets|strtok|atoi|atol|atof) *\(' \
            $(sources planner cli shim calibrate array))"
    none "the planner prints nothing" "$(
        uses_of '(printf|puts|putchar|perror|exit|abort) *\(' $(sources planner))"
    none "the list that simulated programs share has all sources of the shim" "$(
        for file in $(sources shim); do
            grep -Eq "^[[:space:]]%reldir%/${file##*/shim/}( |\$)" "$top_srcdir/shim/sources.am" || echo "$file"
        done)"
    none "no file of more than 600 lines" "$(
        wc -l $(sources planner cli shim calibrate array) | awk '$2 != "total" && $1 > 600')"
    none "no line of code of more than 100 columns" "$(
        awk 'length > 100 { print FILENAME ":" FNR }' \
            $(sources planner cli shim calibrate array | grep '\.[ch]$'))"
}

done_testing
