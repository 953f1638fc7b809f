#!/bin/sh
# The test command: builds in build/test and runs all tests there is a program for: the unit tests
# and checks of `make check`, then the MPI tests under every strategy and without memory, the programs
# that attack the promise, and those that are made from seeds. Works from any directory.
#
#   tests/run.sh [unit | mpi | whole | coverage | sanitize | tidy | versions]      default: unit and mpi
#
# The MPI tests are a choice that goes round in 40 minutes on two cores (run-matrix.sh, run-promise.sh say
# which); whole: all of them, and the packages are built (check_packages.sh).
# coverage: builds in build/coverage, runs unit tests and a selection of the MPI tests, and tells how
# many lines of shim/ and planner/ they reach (coverage.sh). sanitize: builds in build/sanitize with
# AddressSanitizer and UndefinedBehaviorSanitizer and runs the same (sanitize.sh). tidy: clang-tidy
# with .clang-tidy over all sources that are compiled in build/test (tidy.sh). versions: the library with
# other MPIs (versions.sh, with arguments of its own); the default takes a small selection of them.
#
# Installs missing packages where it can (install-deps.sh). Prints every failing line; the last line
# is "N passed, N failed" (", N skipped"). Exits with 1 when anything failed or nothing ran. Logs
# stay in build/test (build/coverage, build/sanitize): tests/**/*.log and mpi.log.
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-all}
case $what in
    all|unit|mpi) ;;
    whole) TEST_WHOLE=yes && export TEST_WHOLE ;;
    coverage|sanitize|tidy) exec sh "tests/$what.sh" ;;
    versions) shift && exec sh tests/versions.sh "$@" ;;
    *) echo "usage: $0 [unit | mpi | whole | coverage | sanitize | tidy | versions]" >&2; exit 2 ;;
esac
build=$(pwd)/build/test
# shellcheck source=tests/build.sh disable=SC1091
. tests/build.sh
n_seeds=10 # of MPI programs made at random

# apart from the others: not every system has it as a package
if [ "$what" != mpi ] && ! command -v google-chrome >/dev/null 2>&1 &&
    ! command -v chromium-browser >/dev/null 2>&1; then
    sh tests/install-deps.sh chromium fonts-dejavu-core ||
        echo "without a browser carpool report --html is not looked at"
fi
[ "$what" = mpi ] || sh tests/install-deps.sh python3-venv || echo "without python3-venv the wheel is not tried"
[ "$what" = mpi ] || sh tests/install-deps.sh cmake || echo "without cmake its use of the library is not tried"
[ "$what" != whole ] || sh tests/install-deps.sh debhelper lintian ||
    echo "without debhelper the Debian package is not built"
[ "$what" = unit ] || sh tests/install-deps.sh slurm-wlm munge || echo "without Slurm nothing runs under srun"
prepare
step "make"
build_in . make.log
if [ "$what" != mpi ]; then
    build_in tests/mpi mpi-make.log check # some checks run them
    run_unit
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

if [ "$what" != unit ]; then
    step "MPI programs"
    build_in tests/mpi mpi-make.log check
    step "MPI tests"
    TEST_TIMEOUT=$mpi_seconds sh "$root/tests/mpi/run-matrix.sh" \
        "$build/tests/mpi" "$library" "$yield" 2>mpi-stderr.log </dev/null | watch_mpi
    tap_results mpi.log
    step "MPI tests without memory"
    run_tap memory.log "$root/tests/mpi/run-memory.sh" "$build/tests/mpi" "$library" "$yield"
    step "MPI tests without shared memory"
    run_tap noshare.log "$root/tests/mpi/run-noshare.sh" "$build/tests/mpi" "$library" "$yield"
    step "programs under Slurm"
    build_in tests/promise promise-make.log check
    sh "$root/tests/install-deps.sh" iproute2 || echo "without iproute2 nothing runs on hosts of a cluster"
    TEST_TIMEOUT=$mpi_seconds TEST_LOGS=$build run_tap slurm.log "$root/tests/slurm/run-slurm.sh" "$build/tests" "$library" "$yield"
    step "programs on hosts with a network between them"
    TEST_TIMEOUT=$mpi_seconds run_tap cluster.log "$root/tests/cluster/run-cluster.sh" "$build/tests" "$library" "$yield" \
        "$build/bench/.libs/libhosts.so"
    step "the promise: programs that attack it"
    build_in tests/promise promise-make.log check
    run_tap promise.log "$root/tests/promise/run-promise.sh" "$build/tests/promise" "$library" "$yield"
    step "MPI programs made from $n_seeds seeds"
    # plain MPICH 4.0.2 sometimes hangs in MPI_Buffer_detach with these; tests/promise has bsend
    CALLS_OPTIONS="--without buffered"
    export CALLS_OPTIONS
    run_tap calls.log "$root/tests/fuzz/run-calls.sh" "$build/tests/mpi" "$library" "$yield" "$n_seeds"
    sh "$root/tests/install-deps.sh" mmdebstrap python3-pip python3-venv ||
        echo "without mmdebstrap there are no suites of Debian, without pip no wheels"
    run_versions small
fi

show_results
