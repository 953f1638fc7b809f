#!/bin/sh
# What `make install` installs, in a directory of its own: the examples of doc/examples are built
# against it, with pkg-config and with CMake, and run; the command finds its library there.
#
#   check_installed.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/shim/.libs/libcarpool.so" ] || skip_all "no library"
command -v make >/dev/null 2>&1 || skip_all "no make"
mpicc=${MPICC:-mpicc.mpich}
mpiexec=${MPIEXEC:-mpiexec.hydra}
clean_environment
make_scratch
unset MAKEFLAGS MFLAGS MAKELEVEL
prefix=$tmp/an/odd-prefix
make -C "$top_builddir" install "prefix=$prefix" >"$tmp/install.log" 2>&1
check "make install" test $? -eq 0 -a -x "$prefix/bin/carpool"
for file in lib/libcarpool.so lib/libcarpool_abi.so lib/libcarpool-planner.so lib/libcarpool_array.so lib/carpool/libyield.so \
    lib/pkgconfig/carpool-planner.pc lib/pkgconfig/carpool_array.pc lib/cmake/carpool/carpool-config.cmake \
    include/carpool/plan.h include/carpool/carpool_array.h share/man/man1/carpool.1 \
    share/doc/carpool/README.md share/doc/carpool/report.schema.json share/doc/carpool/examples/plan_pattern.c; do
    check "installed: $file" test -s "$prefix/$file"
done
cd "$tmp" || exit 2
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
LD_LIBRARY_PATH=$prefix/lib
export PKG_CONFIG_PATH LD_LIBRARY_PATH
examples=$prefix/share/doc/carpool/examples

quietly() { # description, command...
    what=$1
    shift
    if "$@" >out 2>&1; then ok "$what"; else not_ok "$what"; say "$(cat out)"; fi
}
says() { # description, extended regular expression, command...
    what=$1 text=$2
    shift 2
    if timeout 60 "$@" >out 2>&1 && grep -Eq -e "$text" out; then ok "$what"; else not_ok "$what"; say "$(cat out)"; fi
}
flags() { # module; as under any prefix
    pkg-config --define-variable=prefix="$prefix" --cflags --libs "$1"
}
if command -v pkg-config >/dev/null 2>&1; then
    # shellcheck disable=SC2046
    quietly "pkg-config: a program that plans" \
        cc -Wall -Werror "$examples/plan_pattern.c" $(flags carpool-planner) -o plan_pattern
    says "it runs" '^16 ranks, vpt:2: the busiest rank sends 6 messages' ./plan_pattern
    # shellcheck disable=SC2046
    quietly "pkg-config: a program with the array" \
        "$mpicc" -Wall -Werror "$examples/array_sum.c" $(flags carpool_array) -o array_sum
    says "it runs" '^4 ranks: each element is 4$' "$mpiexec" -n 4 ./array_sum
    if command -v c++ >/dev/null 2>&1; then
        # shellcheck disable=SC2046
        quietly "pkg-config: C++" \
            c++ -Wall -Wextra -Wpedantic -Werror "$examples/machine_costs.cc" $(flags carpool-planner) -o machine_costs
        says "it runs" '^edr: 3 us between nodes' ./machine_costs
        for header in "$prefix"/include/carpool/*.h; do
            [ "$(basename "$header")" = carpool_array.h ] || echo "#include <carpool/$(basename "$header")>"
        done >all.cc
        quietly "C++: all headers of the planner" c++ -Wall -Wextra -Wpedantic -Werror -std=c++11 "-I$prefix/include" -c all.cc
    else
        skip "pkg-config: C++" "no c++"
    fi
else
    skip "pkg-config" "no pkg-config"
fi
if command -v cmake >/dev/null 2>&1 && command -v c++ >/dev/null 2>&1; then
    quietly "CMake: configure" cmake -S "$examples" -B cmake "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_COMPILER=$mpicc"
    quietly "CMake: build" cmake --build cmake
    says "CMake: a program runs" 'us by the model$' cmake/plan_pattern
else
    skip "CMake" "no cmake"
fi
if command -v python3 >/dev/null 2>&1 && python3 -c 'import ctypes' 2>/dev/null; then
    says "Python: the planner by ctypes" '^8 ranks: [0-9.]+ us by the model$' \
        python3 "$examples/plan_pattern.py" "$top_srcdir/tests/golden/hub-8.txt"
    says "Python: what the command says, too" \
        "^8 ranks: $("$prefix/bin/carpool" plan "$top_srcdir/tests/golden/hub-8.txt" --no-lanes --strategy vpt:2 --format tsv |
            awk 'NR == 2 { printf "%.2f", $10 }') us" python3 "$examples/plan_pattern.py" "$top_srcdir/tests/golden/hub-8.txt"
    python3 "$examples/plan_pattern.py" none >out 2>&1
    check "Python: an error's text" grep -q 'RuntimeError: none: ' out
else
    skip "Python: the planner by ctypes" "no python3"
fi
says "the installed command finds its library" '' "$mpiexec" -n 2 "$prefix/bin/carpool" run --report=r.json ./array_sum
holds_schema "its report" r.json
done_testing
