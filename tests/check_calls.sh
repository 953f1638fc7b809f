#!/bin/sh
# The rule for calls, held by the build: every function of mpi.h has a row in a table of calls that
# says what it is (carried, polls, cannot wait, waits where it cannot poll) or that it touches nothing
# (shim/tables/harmless.def), and every intercepted one is bracketed against the helper thread.
#
#   check_calls.sh      with top_srcdir, top_builddir and MPICC in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
LC_ALL=C
export LC_ALL
make_scratch
shim=$top_srcdir/shim

# The functions that mpi.h declares, with their numbers of arguments; MPI_Aint_add and _diff are functions
# there and macros elsewhere. Types of functions (MPICH's QMPI) are none.
declared() {
    printf '#include <mpi.h>\n' >"$tmp/declared.c"
    ${MPICC:-mpicc.mpich} -E -P "$tmp/declared.c" | tr '\n' ' ' | sed 's/__attribute__ *(([^;]*));/;/g' | tr ';' '\n' |
        sed -nE 's/^(.*[^A-Za-z_0-9])?(MPIX?_[A-Z_][A-Za-z_0-9]*) *\((.*)\) *$/\2 (\3)/p' |
        awk '{ name = $1; $1 = ""; if (name == "MPI_Aint" || /QMPI_/) next
            n = /^ \( *(void)? *\)$/ ? 0 : gsub(/,/, ",") + 1; print name, n }' | sort -u
    grep -v '^#' "$top_srcdir/tests/mpi_functions.txt" | cut -d ' ' -f 1,2
}

# Name and number of arguments of every intercepted function, from the tables.
intercepted() {
    printf '#define WORDS(prefix, name, n) ROW prefix##_##name n;\n#include "shim/tables/words.h"\n' >"$tmp/rows.c"
    printf '#include "shim/tables/functions.def"\n' >>"$tmp/rows.c"
    ${MPICC:-mpicc.mpich} -E -P -I"$top_srcdir" "$tmp/rows.c" | tr ';' '\n' | sed -n 's/^ *ROW //p' | sort
}

harmless() {
    sed -n 's/^HARMLESS(\([A-Z_][A-Za-z_0-9]*\))$/\1/p' "$shim/tables/harmless.def"
}

without_row() {
    declared | sort -u >"$tmp/declared"
    [ "$(wc -l <"$tmp/declared")" -gt 700 ] || echo "mpi.h declares too little: is MPICC right?"
    { intercepted | cut -d ' ' -f 1; harmless | sed 's/^/MPI_/'; harmless | sed 's/^/MPIX_/'; } >"$tmp/names"
    cut -d ' ' -f 1 "$tmp/declared" | grep -vxFf "$tmp/names" | sed 's/$/ is in mpi.h, and in no table of calls/'
}

# The exported function passes on as many arguments as MPI's has. One that has none is given a word too many, at most.
other_arguments() {
    intercepted >"$tmp/rows"
    awk 'FNR == NR { n[$1] = $2; next } $1 in n && n[$1] != $2 && !($2 == 0 && n[$1] == 1) {
        print $1 " has " $2 " arguments, in the table " n[$1] }' "$tmp/rows" "$tmp/declared"
}

two_rows() {
    { intercepted | cut -d ' ' -f 1; harmless | sed 's/^/MPI_/'; } | sort | uniq -d | sed 's/$/ has more than one row/'
}

# A function or macro that makes an exported call: from EXPORT to the brace that ends it.
unbracketed() {
    awk '
        /EXPORT int/ { inside = 1; text = ""; at = FILENAME ":" FNR }
        inside { text = text $0 "\n" }
        inside && /^( {4})?} *\\?$/ {
            inside = 0
            if (text !~ /CPL_(INSIDE|COLLECTIVE)/ && text !~ /watched_##name/ && text !~ /watched_[A-Z]/ &&
                text !~ /MPI_Query_thread/)
                print at " is not bracketed by CPL_INSIDE"
        }' "$shim"/calls/wrappers*.c
    # what the exported ones jump to
    awk '
        /(WATCHED|static NOINLINE int) watched_|PASSING\(/ { inside = 1; text = ""; at = FILENAME ":" FNR }
        inside { text = text $0 "\n" }
        inside && /^( {4})?} *\\?$/ {
            inside = 0
            if (text !~ /CPL_(INSIDE|COLLECTIVE)/)
                print at " is not bracketed by CPL_INSIDE"
        }' "$shim"/calls/wrappers*.c
}

# Calls that may be collective, and do not end an appointment (meet/appointment.h); unit/test_forwarding
# makes the others.
unnoted() {
    awk '
        /EXPORT int MPI_/ { name = $0 }
        /CPL_INSIDE;/ && name !~ /MPI_Init/ { print FILENAME ":" FNR " is bracketed by CPL_INSIDE, not CPL_COLLECTIVE" }
    ' "$shim/calls/wrappers.c" "$shim/calls/wrappers_windows.c"
}

# Calls that block, but for those of the start, while nothing is managed, and one of a message that is
# there and for which there is no memory.
blocking() {
    grep -nE 'PMPI_(Recv|Send|Ssend|Probe|Mprobe|Wait|Waitall|Waitany|Waitsome)(_c)? *\(' "$shim"/*/*.c |
        grep -vE '/(wrappers[a-z_0-9]*|older|collective)\.c:' |
        grep -vE 'PMPI_Wait\(&(combined->receives\.request\[k\]|windows\.request|request), MPI_STATUS_IGNORE\)' |
        grep -vE '/(distributed_sparse|recognise)\.c:[0-9]+: *PMPI_Recv\(NULL, 0, MPI_BYTE, (status\.MPI_SOURCE|from)'
}

none "every function of mpi.h has a row in a table of calls" "$(without_row)"
none "rows have as many arguments as mpi.h says" "$(other_arguments)"
none "and one only" "$(two_rows)"
none "every intercepted call is bracketed against the helper thread" "$(unbracketed)"
none "every call that may be collective ends an appointment" "$(unnoted)"
none "the shim waits by polling only" "$(blocking)"

done_testing
