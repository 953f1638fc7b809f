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

# The functions that mpi.h declares; MPI_Aint_add and _diff are functions there and macros elsewhere.
declared() {
    printf '#include <mpi.h>\n' >"$tmp/declared.c"
    ${MPICC:-mpicc.mpich} -E -P "$tmp/declared.c" | tr '\n' ' ' |
        grep -oE '(^|[^A-Za-z_0-9])MPIX?_[A-Z_][A-Za-z_0-9]* *\(' | sed -e 's/.*MPIX*_//' -e 's/ *(//' |
        grep -v '^Aint$' | sort -u
}

# The names in the tables: of rows, of their nonblocking and persistent forms, and large counts.
rows() {
    sed -n 's/^[A-Z_]*(\([A-Z_][A-Za-z_0-9]*\)[,)].*/\1/p' "$shim/tables/collectives.def" "$shim/tables/others.def" \
        "$shim/tables/harmless.def"
    sed -n 's/^GATHERS(\([A-Z][a-z_]*\), VIA_MPI, \([A-Z][a-z_]*\), \([A-Z][a-z_]*\),$/\2 \3/p' \
        "$shim/tables/collectives.def" | tr ' ' '\n'
    sed -n 's/^\(NEIGHBOR\|ALLTOALL\)(\([A-Z][a-z_]*\), \([A-Z][a-z_]*\), \([A-Z][a-z_]*\),$/\2 \3 \4/p' "$shim/tables/calls.def" | tr ' ' '\n'
    sed -n -e 's/^\(SEND\|ISEND\|SEND_INIT\|WRITTEN_C\)(\([A-Z][A-Za-z_]*\).*/\2 \2_c/p' \
        -e 's/^WRITTEN(\([A-Z][A-Za-z_]*\).*/\1/p' "$shim/tables/pt2pt.def" | tr ' ' '\n'
    printf '%s\n' Init Init_thread Finalize Query_thread
}

without_row() {
    rows | sort -u >"$tmp/rows"
    declared >"$tmp/declared"
    [ "$(wc -l <"$tmp/declared")" -gt 400 ] || echo "mpi.h declares too little: is MPICC right?"
    grep -vxFf "$tmp/rows" "$tmp/declared" | sed 's/$/ is in mpi.h, and in no table of calls/'
}

two_rows() {
    rows | grep -v '^NAME$' | sort | uniq -d | sed 's/$/ has more than one row/'
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
        /(WATCHED|static NOINLINE int) watched_/ { inside = 1; text = ""; at = FILENAME ":" FNR }
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
# there and for which there is no memory (meet/census.c).
blocking() {
    grep -nE 'PMPI_(Recv|Send|Ssend|Probe|Mprobe|Wait|Waitall|Waitany|Waitsome)(_c)? *\(' "$shim"/*/*.c |
        grep -vE '/(wrappers[a-z_0-9]*|company|collective)\.c:' |
        grep -vE 'PMPI_Wait\(&(rides->receives\.request\[k\]|windows\.request|request), MPI_STATUS_IGNORE\)' |
        grep -vE '/census\.c:[0-9]+: *PMPI_Recv\(NULL, 0, MPI_BYTE, status\.MPI_SOURCE'
}

none "every function of mpi.h has a row in a table of calls" "$(without_row)"
none "and one only" "$(two_rows)"
none "every intercepted call is bracketed against the helper thread" "$(unbracketed)"
none "every call that may be collective ends an appointment" "$(unnoted)"
none "the shim waits by polling only" "$(blocking)"

done_testing
