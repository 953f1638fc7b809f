# shellcheck shell=sh
# What the test commands share: packages, builds, results. Sourced in the root of the sources, with
# $build, the directory of the build; then prepare, builds and tests, and at last show_results.

root=$(pwd)
LC_ALL=C
export LC_ALL
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
unset LD_PRELOAD MAKEFLAGS MAKELEVEL
n_jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || n_jobs=2
unit_seconds=1800 # a test program or check that takes longer is stopped
mpi_seconds=120  # so is a run of an MPI program, which takes one or two
library=$build/shim/.libs/libcarpool.so
yield=$build/bench/.libs/libyield.so

step() { # tells how long the one before took
    step_now=$(date +%s)
    [ -z "${step_began:-}" ] || echo "   ($((step_now - step_began)) s)"
    step_began=$step_now
    echo "== $*"
}

give_up() { # what went wrong, log
    echo "$1; the end of $2:" >&2
    tail -n 25 "$2" >&2
    echo "0 passed, 1 failed"
    exit 1
}

# Installs what is missing, makes configure and runs it in $build, which is then the present directory.
prepare() { # arguments of configure...
    step "packages"
    sh tests/install-deps.sh autoconf automake libtool pkg-config make gcc libc6-dev mpich \
        libmpich-dev libhwloc-dev libjansson-dev uthash-dev zlib1g-dev libcmocka-dev libmetis-dev gfortran \
        binutils spin libsimgrid-dev g++ xz-utils || echo "going on without them"
    mkdir -p "$build" || exit 1
    if ! [ -e configure ] || [ -n "$(find configure.ac -newer configure)" ]; then
        step "autoreconf"
        autoreconf -fi >"$build/autoreconf.log" 2>&1 ||
            give_up "autoreconf failed" "$build/autoreconf.log"
    fi
    cd "$build" || exit 1
    if ! [ -e config.status ] || [ -n "$(find "$root/configure" -newer config.status)" ]; then
        step "configure"
        "$root/configure" --enable-developer "$@" >configure.log 2>&1 ||
            give_up "configure failed" "$build/configure.log"
    fi
    MPIEXEC=$(sed -n 's/^MPIEXEC = *//p' tests/Makefile)
    MPIEXEC=${MPIEXEC:-mpiexec.hydra}
    export MPIEXEC
    if command -v timeout >/dev/null 2>&1; then
        limit="timeout -k 10 $unit_seconds"
    else
        echo "timeout is missing: a test that hangs is not stopped"
        limit=
    fi
    : >results.txt # ok | not ok | skip, a tab, what
}

build_in() { # directory, log, arguments of make...
    directory=$1 make_log=$2
    shift 2
    make -C "$directory" -j "$n_jobs" "$@" >"$make_log" 2>&1 </dev/null ||
        give_up "make in $directory failed" "$build/$make_log"
}

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

run_unit() { # arguments of make check...
    step "unit tests and checks"
    rm -f tests/*.trs tests/*/*.trs tests/*.log tests/*/*.log
    make -k -j "$n_jobs" check TEST_LIMIT="$limit" "$@" >check.log 2>&1 </dev/null
    code=$?
    unit_results >unit-results.txt
    if [ $code -ne 0 ] && ! grep -q '^not ok' unit-results.txt; then
        tail -n 25 check.log
        printf 'not ok\tmake check fails: see %s\n' "$build/check.log" >>unit-results.txt
    fi
    cat unit-results.txt >>results.txt
    echo "   $(grep -c '^ok' unit-results.txt) passed, $(grep -c '^not ok' unit-results.txt) failed"
}

tap_results() { # log
    awk 'BEGIN { OFS = "\t" }
        /^1\.\.[0-9]/ { done = 1 }
        / # SKIP/ { sub(/^ok [0-9]* - /, ""); print "skip", $0; next }
        /^ok / { sub(/^ok [0-9]* - /, ""); print "ok", $0; next }
        /^not ok / { sub(/^not ok [0-9]* - /, ""); print "not ok", $0; next }
        END { if (!done) print "not ok", FILENAME " did not come to its end" }' "$1" >>results.txt
}

# A script that writes TAP: its lines into a log, and what failed or was left out into the results.
run_tap() { # log, script, arguments...
    log=$1
    shift
    sh "$@" >"$log" 2>"$log.err" </dev/null
    tap_results "$log"
    echo "   $(grep -c '^ok' "$log") passed, $(grep -c '^not ok' "$log") failed"
}

# Of a list like tests/mpi/testlist each line with one number of ranks, at most 8 where it has one so
# small, and one strategy; all strategies come in turn.
shorten_matrix() { # list
    # shellcheck source=tests/tap.sh disable=SC1091
    examples=$(. "$root/tests/tap.sh" && strategies_to_test "$build/cli/carpool" | tr '\n' ' ')
    awk -F ' *[|] *' -v examples="$examples" '
        BEGIN { OFS = " | "; n_all = split(examples, all, " ") }
        /^#/ || NF < 4 || /^array_memory/ { next } # that is slow, and says nothing of the library
        {
            n = split($2, ranks, ",")
            for (i = n; i > 1 && ranks[i] + 0 > 8; i--) continue
            $2 = ranks[i]
            n = split($3, strategies, ",")
            $3 = $3 == "*" ? all[k % n_all + 1] : strategies[k % n + 1]
            k++
            print
        }' "$1"
}

# The MPI tests, shortened: MATRIX and PROMISE are the lists.
run_mpi() { # arguments of make, for the programs...
    build_in tests/mpi mpi-make.log "$@" check
    build_in tests/promise promise-make.log "$@" check
    step "MPI tests, a selection"
    TEST_LIST=$MATRIX TEST_TIMEOUT=$mpi_seconds run_tap mpi.log "$root/tests/mpi/run-matrix.sh" \
        "$build/tests/mpi" "$library" "$yield"
    step "the promise, a selection"
    TEST_LIST=$PROMISE TEST_SETTINGS=one TEST_TIMEOUT=$mpi_seconds run_tap promise.log \
        "$root/tests/promise/run-promise.sh" "$build/tests/promise" "$library" "$yield"
}

run_versions() { # small | some | whole, names of other MPIs or none for all...
    choice=$1
    shift
    rows=$(sed -e '/^#/d' -e '/^$/d' "$root/tests/versions/list")
    [ "$choice" != small ] || rows=$(echo "$rows" | grep '|.*|.*| .*small')
    [ $# -gt 0 ] || set -- $(echo "$rows" | cut -d '|' -f 1)
    for version in "$@"; do
        step "$version"
        run_tap "version-$version.log" "$root/tests/versions/run-version.sh" "$build" "$version" "$choice"
        sed -n 's/^ok [0-9]* - \(.*\) # SKIP \(.*\)/   not tried: \1: \2/p' "version-$version.log"
    done
}

show_results() { # the last line, and whether nothing failed
    step "results"
    sed -n 's/^not ok	/FAILED: /p' results.txt
    n_passed=$(grep -c '^ok	' results.txt)
    n_failed=$(grep -c '^not ok	' results.txt)
    n_skipped=$(grep -c '^skip	' results.txt)
    summary="$n_passed passed, $n_failed failed"
    [ "$n_skipped" -eq 0 ] || summary="$summary, $n_skipped skipped"
    echo "$summary"
    [ "$n_failed" -eq 0 ] && [ "$n_passed" -gt 0 ]
}
