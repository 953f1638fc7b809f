#!/bin/sh
# The test command: builds in build/test and runs all tests there is a program for: the unit tests
# and checks of `make check`, then the MPI tests under every strategy, the programs that attack the
# promise, and those that are made from seeds. Works from any directory.
#
#   tests/run.sh [unit | mpi]      default: both
#
# Installs missing packages where it can (install-deps.sh). Prints every failing line; the last line
# is "N passed, N failed" (", N skipped"). Exits with 1 when anything failed or nothing ran. Logs
# stay in build/test: tests/**/*.log and mpi.log.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
build=$root/build/test
what=${1:-all}
case $what in
    all|unit|mpi) ;;
    *) echo "usage: $0 [unit | mpi]" >&2; exit 2 ;;
esac
LC_ALL=C
export LC_ALL
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
unset LD_PRELOAD MAKEFLAGS MAKELEVEL
n_jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || n_jobs=2
unit_seconds=900 # a test program or check that takes longer is stopped
mpi_seconds=60   # so is a run of an MPI program
n_seeds=25       # of MPI programs made at random

step() {
    echo "== $*"
}

give_up() { # what went wrong, log
    echo "$1; the end of $2:" >&2
    tail -n 25 "$2" >&2
    echo "0 passed, 1 failed"
    exit 1
}

step "packages"
sh tests/install-deps.sh autoconf automake libtool pkg-config make gcc libc6-dev mpich \
    libmpich-dev libhwloc-dev libjansson-dev uthash-dev zlib1g-dev libcmocka-dev libmetis-dev gfortran \
    binutils spin libsimgrid-dev g++ || echo "going on without them"
# apart from the others: not every system has it as a package
if [ "$what" != mpi ] && ! command -v google-chrome >/dev/null 2>&1 &&
    ! command -v chromium-browser >/dev/null 2>&1; then
    sh tests/install-deps.sh chromium fonts-dejavu-core ||
        echo "without a browser carpool report --html is not looked at"
fi

mkdir -p "$build" || exit 1
if ! [ -e configure ] || [ -n "$(find configure.ac -newer configure)" ]; then
    step "autoreconf"
    autoreconf -fi >"$build/autoreconf.log" 2>&1 ||
        give_up "autoreconf failed" "$build/autoreconf.log"
fi
cd "$build" || exit 1
if ! [ -e config.status ] || [ -n "$(find "$root/configure" -newer config.status)" ]; then
    step "configure"
    "$root/configure" --enable-developer >configure.log 2>&1 ||
        give_up "configure failed" "$build/configure.log"
fi
step "make"
make -j "$n_jobs" >make.log 2>&1 || give_up "make failed" "$build/make.log"
if ! command -v timeout >/dev/null 2>&1; then
    echo "timeout is missing: a test that hangs is not stopped"
    limit=
else
    limit="timeout -k 10 $unit_seconds"
fi

: >results.txt # ok | not ok | skip, a tab, what
unit_results() { # from the .log files, where automake's driver writes "PASS: TEST NUMBER - NAME"
    for trs in tests/*.trs tests/*/*.trs; do
        [ -e "$trs" ] || continue
        test=${trs#tests/}
        awk -v test="${test%.trs}" '
            BEGIN { OFS = "\t" }
            !/^(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR): / { next }
            $2 != test && $2 != test ".sh" { next } # what the test itself wrote
            { result = $1; sub(/^[A-Z]+: /, "") }
            result == "PASS:" || result == "XFAIL:" { print "ok", $0; next }
            result == "SKIP:" { print "skip", $0; next }
            # a program whose tests failed exits with their number: that is no further failure
            result == "ERROR:" && /exited with status/ && failed { next }
            { failed = 1; print "not ok", $0 }' "${trs%.trs}.log"
    done
}

if [ "$what" != mpi ]; then
    step "unit tests and checks"
    rm -f tests/*.trs tests/*/*.trs tests/*.log tests/*/*.log
    make -k -j "$n_jobs" check TEST_LIMIT="$limit" >check.log 2>&1 </dev/null
    code=$?
    unit_results >results.txt
    if [ $code -ne 0 ] && ! grep -q '^not ok' results.txt; then
        tail -n 25 check.log
        printf 'not ok\tmake check fails: see %s\n' "$build/check.log" >>results.txt
    fi
    echo "   $(grep -c '^ok' results.txt) passed, $(grep -c '^not ok' results.txt) failed"
fi

# Prints a line for every program and number of ranks, and all of TAP into the log.
watch_mpi() {
    last=
    while IFS= read -r line; do
        printf '%s\n' "$line" >&3
        case $line in
            "ok "*|"not ok "*) ;;
            *) continue ;;
        esac
        run=${line#* - }
        run=${run%,*} # without the strategy
        [ "$run" = "$last" ] || echo "   $run"
        last=$run
    done 3>mpi.log
}

mpi_results() {
    awk 'BEGIN { OFS = "\t" }
        / # SKIP/ { sub(/^ok [0-9]* - /, ""); print "skip", $0; next }
        /^ok / { sub(/^ok [0-9]* - /, ""); print "ok", $0; next }
        /^not ok / { sub(/^not ok [0-9]* - /, ""); print "not ok", $0; next }
        /^1\.\.[1-9]/ { done = 1 }
        END { if (!done) print "not ok", "the MPI tests did not come to their end" }' mpi.log
}

if [ "$what" != unit ]; then
    step "MPI programs"
    make -C tests/mpi -j "$n_jobs" check >mpi-make.log 2>&1 </dev/null ||
        give_up "the MPI tests cannot be built" "$build/mpi-make.log"
    mpiexec=$(sed -n 's/^MPIEXEC = *//p' tests/Makefile)
    step "MPI tests"
    MPIEXEC=${mpiexec:-mpiexec.hydra} TEST_TIMEOUT=$mpi_seconds sh "$root/tests/mpi/run-matrix.sh" \
        "$build/tests/mpi" "$build/shim/.libs/libcarpool.so" "$build/bench/.libs/libyield.so" \
        2>mpi-stderr.log </dev/null | watch_mpi
    mpi_results >>results.txt
fi

# A script that writes TAP: its lines into a log, and what failed or was left out into the results.
run_tap() { # log, script, arguments...
    log=$1
    shift
    sh "$@" >"$log" 2>"$log.err" </dev/null
    awk 'BEGIN { OFS = "\t" }
        / # SKIP/ { sub(/^ok [0-9]* - /, ""); print "skip", $0; next }
        /^ok / { sub(/^ok [0-9]* - /, ""); print "ok", $0; next }
        /^not ok / { sub(/^not ok [0-9]* - /, ""); print "not ok", $0; next }
        /^1\.\.[0-9]/ { done = 1 }
        END { if (!done) print "not ok", FILENAME " did not come to its end" }' "$log" >>results.txt
    echo "   $(grep -c '^ok' "$log") passed, $(grep -c '^not ok' "$log") failed"
}

if [ "$what" != unit ]; then
    library=$build/shim/.libs/libcarpool.so yield=$build/bench/.libs/libyield.so
    MPIEXEC=${mpiexec:-mpiexec.hydra}
    export MPIEXEC
    step "the promise: programs that attack it"
    make -C tests/promise -j "$n_jobs" check >promise-make.log 2>&1 </dev/null ||
        give_up "the programs of the promise cannot be built" "$build/promise-make.log"
    run_tap promise.log "$root/tests/promise/run-promise.sh" "$build/tests/promise" "$library" "$yield"
    step "MPI programs made from $n_seeds seeds"
    # plain MPICH 4.0.2 sometimes hangs in MPI_Buffer_detach with these; tests/promise has bsend
    CALLS_OPTIONS="--without buffered"
    export CALLS_OPTIONS
    run_tap calls.log "$root/tests/fuzz/run-calls.sh" "$build/tests/mpi" "$library" "$yield" "$n_seeds"
fi

step "results"
sed -n 's/^not ok	/FAILED: /p' results.txt
n_passed=$(grep -c '^ok	' results.txt)
n_failed=$(grep -c '^not ok	' results.txt)
n_skipped=$(grep -c '^skip	' results.txt)
summary="$n_passed passed, $n_failed failed"
[ "$n_skipped" -eq 0 ] || summary="$summary, $n_skipped skipped"
echo "$summary"
[ "$n_failed" -eq 0 ] && [ "$n_passed" -gt 0 ]
