#!/bin/sh
# Tries the library with another MPI: a row of `list`.
#
#   run-version.sh BUILDDIR NAME [small | whole]
#
# BUILDDIR is where the library was built with the MPI that is installed: that binary is tried. What is
# downloaded or built stays in BUILDDIR/../versions; nothing is installed into the system. The programs of
# tests/mpi and tests/promise are compiled with the MPI's own mpi.h. small: the lines of testlist
# and cases with the flag `small`, in half a minute; otherwise these and every third of all lines, shortened to
# one number of ranks and one strategy; whole: all lines so, and again with a library that was built with this MPI.
#
# VERSION_LIBRARY is a library that is tried beside the one that a suite builds. Writes TAP; what
# cannot be had is skipped. Exits with 1 when a test failed.
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILDDIR NAME [small | whole]" >&2; exit 2; }
mkdir -p "$1" || exit 2
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/build.sh disable=SC1091
. tests/build.sh
# shellcheck source=tests/tap.sh disable=SC1091
. tests/tap.sh
clean_environment
make_scratch
name=$2 choice=${3:-some}
store=$(dirname "$build")/versions
here=$store/$name
row=$(grep -n "^$name *|" tests/versions/list)
if [ "$name" = here ]; then row="1:here | here | installed | ${VERSION_FLAGS:-}"; fi
[ -n "$row" ] || { echo "tests/versions/list has no $name" >&2; exit 2; }
cut_row() { # number of the column
    echo "$row" | cut -d '|' -f "$1" | sed -e 's/^ *//' -e 's/ *$//'
}
number=${row%%:*} kind=$(cut_row 2) source=$(cut_row 3) flags=$(cut_row 4)
unpacked='' programs='' mpicc=''
mkdir -p "$here" || exit 2

has() { # flag
    case " $flags " in *" $1 "*) return 0 ;; esac
    return 1
}

if has broken; then export TEST_BROKEN_MPI=yes; fi
for setting in $flags; do
    case $setting in
        [A-Z]*=*) export "${setting?}" ;;
    esac
done

leave_out() { # reason
    skip "$name" "$1"
    done_testing
    exit
}

# Results of a script that writes TAP become results of this one.
relay() { # label, file
    grep -q '^1\.\.[0-9]' "$2" || echo "not ok 0 - did not come to its end" >>"$2"
    while IFS= read -r relayed; do
        what="$1: ${relayed#* - }"
        case $relayed in
            "ok "*" # SKIP "*) skip "${what%% \# SKIP *}" "${relayed##* \# SKIP }" ;;
            "ok "*) ok "$what" ;;
            "not ok "*) not_ok "$what" ;;
            "1..0 # SKIP "*) skip "$1" "${relayed#1..0 \# SKIP }" ;;
            "#"*) echo "$relayed" ;;
        esac
    done <"$2"
}

# --- what is run

# The lists $here/matrix and $here/promise, in the forms of tests/mpi/testlist and tests/promise/cases.
choose_lines() {
    unwanted=' optional' # Fortran, and what not every MPI can
    if has mpi3; then unwanted="$unwanted| mpi4"; fi
    broken=$(echo "$flags" | tr ' ' '\n' | sed -n 's/^not://p' | paste -s -d '|' -)
    shorten_matrix tests/mpi/testlist >"$tmp/matrix"
    sed -e '/^#/d' -e '/^$/d' tests/promise/cases >"$tmp/promise"
    for list in matrix promise; do
        sed 's/$/ /' "$tmp/$list" | grep -Ev -e "($unwanted) " -e "^(${broken:-none}) " |
            awk -v choice="$choice" -v number="$number" '
                choice == "whole" || / small / || (choice == "some" && NR % 3 == number % 3)' >"$here/$list"
    done
}

build_programs() { # in $programs, which is configured
    log=$here/programs.log
    : >"$log"
    make -C "$programs/planner" -j "$n_jobs" libplanner.la >>"$log" 2>&1 </dev/null
    make -C "$programs/array" libarray.la >>"$log" 2>&1 </dev/null
    code=0
    for list in matrix:tests/mpi promise:tests/promise; do
        # shellcheck disable=SC2046
        make -k -C "$programs/${list#*:}" -j "$n_jobs" \
            $(cut -d '|' -f 1 "$here/${list%:*}" | sort -u) >>"$log" 2>&1 </dev/null || code=1
        case $list in promise:*)
            ! grep -q '^loader ' "$here/promise" || make -C "$programs/tests/promise" plugin.so >>"$log" 2>&1 || code=1 ;;
        esac
    done
    check "$name: the programs are compiled" test $code -eq 0
    [ $code -eq 0 ] || say "$(grep -E 'error|\*\*\*' "$log")"
}

run_lines() { # label, library
    TEST_STRATEGIES=auto
    TEST_TIMEOUT=${TEST_TIMEOUT:-$mpi_seconds}
    TEST_SETTINGS=one
    export TEST_STRATEGIES TEST_TIMEOUT TEST_SETTINGS MPIEXEC
    for list in matrix promise; do
        part=mpi
        [ $list = matrix ] || part=promise
        TEST_LIST=$here/$list sh "tests/$part/run-$list.sh" "$programs/tests/$part" "$2" "$yield" \
            >"$here/$list.log" 2>"$here/$list.err" </dev/null
        relay "$1" "$here/$list.log"
    done
}

# --- MPIs

# Packages of PyPI, each in a folder of $store/pypi; $unpacked are these folders.
fetch() { # requirements of pip...
    [ "${1#-}" = "$1" ] || return 1
    for wanted in "$@"; do
        folder=$store/pypi/$(echo "$wanted" | tr -d '*')
        unpacked="$unpacked $folder"
        if [ -e "$folder/complete" ]; then continue; fi
        rm -rf "$folder"
        mkdir -p "$folder/download"
        python3 -m pip download -q --disable-pip-version-check --no-deps -d "$folder/download" "$wanted" \
            >"$here/pip.log" 2>&1 </dev/null || leave_out "pip cannot download $wanted: $(tail -n 1 "$here/pip.log")"
        for wheel in "$folder"/download/*.whl; do
            python3 -m zipfile -e "$wheel" "$folder" || leave_out "cannot unpack $wanted"
        done
        rm -r "$folder/download"
        for data in "$folder"/*.data/data/*; do # bin, lib, include
            [ ! -e "$data" ] || mv "$data" "$folder"
        done
        [ ! -d "$folder/bin" ] || chmod +x "$folder"/bin/*
        touch "$folder/complete"
    done
}

find_in() { # path: the first of the unpacked folders that has it
    for folder in $unpacked; do
        if [ -e "$folder/$1" ]; then echo "$folder/$1" && return; fi
    done
    return 1
}

# A compiler, and the launcher, of an MPI that is unpacked.
prepare_wheel() {
    command -v python3 >/dev/null 2>&1 && python3 -m pip --version >/dev/null 2>&1 ||
        leave_out "no pip"
    set -f
    # shellcheck disable=SC2086
    set -- $source
    set +f
    fetch "$@"
    lib=mpi abi=''
    if has abi; then lib=mpi_abi abi=-DMPI_ABI; fi
    include=$(dirname "$(find_in include/mpi.h)") && place=$(dirname "$(find_in "lib/lib$lib.so")") ||
        leave_out "$source has no mpi.h or no lib$lib.so"
    MPIEXEC=$(find_in bin/mpiexec.hydra) || MPIEXEC=$(find_in bin/mpiexec)
    mpicc=$here/mpicc
    cat >"$mpicc" <<EOF
#!/bin/sh
flags="-I$include $abi -L$place -Wl,-rpath,$place -l$lib"
run=
if [ "\${1:-}" = -show ]; then shift && run=echo; fi
exec \$run cc "\$@" \$flags
EOF
    chmod +x "$mpicc"
}

configure_here() { # folder, arguments of configure...
    programs=$1
    shift
    mkdir -p "$programs"
    if ! [ -e "$programs/config.status" ] || [ configure -nt "$programs/config.status" ]; then
        (cd "$programs" && "$root/configure" --without-simgrid --without-metis "$@" >configure.log 2>&1) ||
            { not_ok "$name: configure" && say "$(tail -n 3 "$programs/configure.log")" && return 1; }
    fi
}

build_library() { # in $programs
    make -C "$programs/planner" -j "$n_jobs" >"$here/library.log" 2>&1 </dev/null &&
        make -C "$programs/shim" -j "$n_jobs" >>"$here/library.log" 2>&1 </dev/null
    code=$?
    check "$name: the library is built with it" test $code -eq 0
    [ $code -eq 0 ] || say "$(grep -E 'error|\*\*\*' "$here/library.log")"
    return $code
}

run_wheel() {
    prepare_wheel
    choose_lines
    configure_here "$here/build" MPICC="$mpicc" MPIEXEC="$MPIEXEC" MPIFORT=no CFLAGS='-O1 -g' || return
    build_programs
    run_lines "$name" "$library"
    if [ "$choice" = whole ] && build_library; then
        run_lines "$name, a library of its own" "$programs/shim/.libs/libcarpool.so"
    fi
}

# The MPI that is installed: inside a suite's folder.
run_here() {
    configure_here "$build" || return
    MPIEXEC=$(sed -n 's/^MPIEXEC = *//p' "$build/tests/Makefile")
    build_library || return
    make -C "$build/cli" >"$here/cli.log" 2>&1 # tells the strategies
    choose_lines
    make -C "$build/bench" libyield.la >"$here/yield.log" 2>&1
    build_programs
    run_lines "its own library" "$library"
    if [ -n "${VERSION_LIBRARY:-}" ]; then run_lines "the library from outside" "$VERSION_LIBRARY"; fi
}

# --- suites of Debian

make_suite() { # folder
    set -- "$1" --variant=apt --include=make,gcc,libc6-dev,mpich,libmpich-dev,libhwloc-dev,libjansson-dev \
        --include=uthash-dev,zlib1g-dev,pkg-config,procps
    if has expired; then set -- "$@" '--aptopt=Acquire::Check-Valid-Until "false"'; fi
    folder=$1
    shift
    rm -rf "$folder.new" # never used: nothing is mounted there
    mmdebstrap --mode=root "$@" "$source" "$folder.new" >"$here/mmdebstrap.log" 2>&1 </dev/null &&
        mv "$folder.new" "$folder"
}

# In a mount namespace of its own: what is mounted goes with it.
inside() { # folder, command...
    # shellcheck disable=SC2016
    unshare -m sh -c 'folder=$1 && shift && mount --make-rprivate / &&
        mount -t proc proc "$folder/proc" && mount -t sysfs -o ro sysfs "$folder/sys" &&
        mkdir -p "$folder/dev/shm" && mount -t tmpfs tmpfs "$folder/dev/shm" &&
        exec chroot "$folder" "$@"' inside "$@"
}

run_suite() {
    [ "$(id -u)" -eq 0 ] || leave_out "not root"
    command -v mmdebstrap >/dev/null 2>&1 || leave_out "no mmdebstrap"
    unshare -m true 2>/dev/null || leave_out "no mount namespace"
    [ -d "$here/root" ] || make_suite "$here/root" ||
        leave_out "mmdebstrap: $(grep '^E: ' "$here/mmdebstrap.log" | tail -n 1)"
    mkdir -p "$here/root/carpool"
    echo "127.0.0.1 localhost $(uname -n)" >"$here/root/etc/hosts"
    tar -c --exclude=./.git --exclude=./build --exclude=./shared . | tar -x -C "$here/root/carpool"
    # what autoconf made keeps its dates: it is not made again
    outside=
    if [ "$choice" != small ] && ! has older; then
        cp "$library" "$here/root/carpool/outside.so" && outside=/carpool/outside.so
    fi
    inside "$here/root" env VERSION_LIBRARY="$outside" VERSION_FLAGS="$flags" TEST_TIMEOUT="$mpi_seconds" \
        sh /carpool/tests/versions/run-version.sh /carpool/build/test here "$choice" \
        >"$here/suite.log" 2>"$here/suite.err" </dev/null
    relay "$name" "$here/suite.log"
}

# --- MPIs that the library is not for

same_as_without() { # description, settings of the environment for the ranks...
    what=$1
    shift
    launch_hello "$@"
    if [ "$code" -eq 0 ] && cmp -s "$tmp/plain" "$tmp/out"; then
        ok "$name: $what"
    else
        not_ok "$name: $what"
        say "exit code $code"
        say "$(diff "$tmp/plain" "$tmp/out")"
        say "$(tail -n 5 "$tmp/err")"
    fi
}

launch_hello() { # settings...
    timeout -k 5 "$mpi_seconds" "$MPIEXEC" --allow-run-as-root --oversubscribe -n 4 env "$@" "$here/hello" \
        >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
}

run_foreign() {
    if [ "$source" = installed ]; then
        mpicc=mpicc.openmpi MPIEXEC=mpiexec.openmpi
        command -v $mpicc >/dev/null 2>&1 || leave_out "no $mpicc"
    else
        prepare_wheel
    fi
    "$mpicc" -std=c11 -o "$here/hello" tests/versions/hello.c 2>"$here/hello.log" ||
        leave_out "$mpicc does not compile"
    launch_hello NOTHING=
    cp "$tmp/out" "$tmp/plain"
    [ $code -eq 0 ] || leave_out "mpiexec alone: exit code $code"
    for mode in off profile auto force; do
        same_as_without "mode $mode" LD_PRELOAD="$library" CARPOOL_MODE=$mode
    done
}

# --- Python

run_python() {
    prepare_wheel
    mpi=$unpacked
    unpacked=
    fetch mpi4py
    site=${unpacked# }
    tests=$store/pypi/mpi4py-tests
    if ! [ -d "$tests" ]; then
        python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary mpi4py -d "$here" \
            mpi4py >"$here/pip.log" 2>&1 </dev/null || leave_out "pip cannot download mpi4py's sources"
        mkdir "$tests.new" && tar -xzf "$here"/mpi4py-*.tar.gz --strip-components=1 -C "$tests.new" &&
            mv "$tests.new" "$tests"
    fi
    LD_LIBRARY_PATH=$(for folder in $mpi; do printf '%s/lib:' "$folder"; done)
    PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=yes
    export LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
    python_tests without "$yield"
    [ $code -eq 0 ] || leave_out "mpi4py's tests fail without the library: $(tail -n 1 "$tmp/python")"
    cp "$tmp/python" "$tmp/plain"
    for mode in auto force; do
        python_tests $mode "$library:$yield"
        check "$name: mpi4py's tests, mode $mode: $(cat "$tmp/plain")" cmp -s "$tmp/plain" "$tmp/python"
        cmp -s "$tmp/plain" "$tmp/python" || say "$(grep -E '^(FAIL|ERROR|Traceback|carpool)|Error' "$here/python-$mode.log")"
    done
}

python_tests() { # mode, preload; what is said of them in $tmp/python
    [ "$choice" != small ] || set -- "$1" "$2" -i test_p2p_buf -i test_cco_ngh
    [ "$choice" = small ] || set -- "$1" "$2" -i test_p2p -i test_cco_nb -i test_cco_ngh -i test_cco_pr -i test_request \
        -i test_msg -i test_comm -i test_grequest -i test_threads -i test_status
    mode=$1 preload=$2
    shift 2
    timeout -k 5 600 "$MPIEXEC" -n 3 -genv LD_PRELOAD "$preload" -genv CARPOOL_MODE "${mode#without}" \
        python3 "$tests/test/main.py" -q "$@" >"$here/python-$mode.log" 2>&1 </dev/null
    code=$?
    { grep -E '^(Ran|OK|FAILED)' "$here/python-$mode.log" | sed 's/ in .*//' | sort | uniq -c | tr '\n' ' '
        echo "exit code $code"; } >"$tmp/python"
}

# --- Carpool's own wheel

make_package() { # wheel | tarball, pattern of its name; leaves its path in $package
    command -v python3 >/dev/null 2>&1 && python3 -m venv --help >/dev/null 2>&1 || leave_out "no venv"
    make -C "$build" "$1" >"$here/$1.log" 2>&1 </dev/null
    code=$?
    package=$(ls "$build"/dist/$2 2>/dev/null | tail -n 1)
    ! grep -q 'Error 77' "$here/$1.log" || leave_out "$1: PyPI or Debian's packages cannot be reached"
    check "$name: make $1" test $code -eq 0
    [ $code -eq 0 ] || say "$(tail -n 5 "$here/$1.log")"
    return $code
}

run_venv() {
    make_package wheel "carpool-*-manylinux_*_$(uname -m).whl" || return
    set -f
    # shellcheck disable=SC2086
    set -- $source
    set +f
    sh tests/versions/wheel.sh "$name" "$package" "$here" "$@" >"$here/test.log" 2>"$here/test.err" </dev/null
    relay "its own wheel" "$here/test.log"
}

run_emulated() {
    sh tests/install-deps.sh qemu-user-static "binutils-$flags-linux-gnu" || leave_out "no qemu-user-static, or no binutils"
    export PROCESSORS="$flags"
    make_package tarball "carpool-*-linux-$flags.tar.xz" || return
    zig=$(ls "$build"/wheel-build/tools/lib/python3*/site-packages/ziglang/zig | tail -n 1)
    sh tests/versions/emulated.sh "$name" "$flags" "$package" "$zig" "$here" "$source" \
        >"$here/test.log" 2>"$here/test.err" </dev/null
    relay "its own tarball" "$here/test.log"
}

"run_$kind"
done_testing
