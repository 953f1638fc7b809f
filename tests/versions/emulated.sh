#!/bin/sh
# Tries a tarball of Carpool for another processor under qemu, with an MPICH of PyPI for that: the command, a program
# of one rank, one of two. What it tells is not how fast anything is, and qemu orders memory as this processor does.
#
#   emulated.sh NAME PROCESSOR TARBALL ZIG FOLDER REQUIREMENT      ZIG: the command, to compile; FOLDER keeps downloads
#
# Writes TAP; what cannot be had is skipped. Exits with 1 when a test failed.
set -u
[ $# -eq 6 ] || { echo "usage: $0 NAME PROCESSOR TARBALL ZIG FOLDER REQUIREMENT" >&2; exit 2; }
tests=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/tap.sh disable=SC1091
. "$tests/tap.sh"
name=$1 processor=$2 tarball=$3 zig=$4 folder=$5 requirement=$6
clean_environment
make_scratch
leave_out() { # reason
    skip "$name" "$1"
    done_testing
    exit
}
mkdir -p "$folder/pypi" && folder=$(cd "$folder" && pwd) || exit 2
handler=/usr/lib/binfmt.d/qemu-$processor.conf
[ -r "$handler" ] || leave_out "no $handler: apt-get install qemu-user-static"
sh "$tests/../packaging/wheel/debian.sh" "$folder/root" "$processor" libc6 2>"$tmp/err" || leave_out "no libc: $(tail -n 1 "$tmp/err")"
ls "$folder"/pypi/*.data >/dev/null 2>&1 || {
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
        --platform "manylinux_2_28_$processor" --platform "manylinux2014_$processor" -d "$tmp/pypi" "$requirement" >"$tmp/pip" 2>&1 </dev/null &&
        python3 -m zipfile -e "$tmp"/pypi/*.whl "$folder/pypi" || leave_out "pip cannot download $requirement: $(tail -n 1 "$tmp/pip")"
}
mpi=$(echo "$folder"/pypi/*.data/data)
chmod +x "$mpi"/bin/*
cd "$tmp" || exit 2
mkdir carpool && tar -xf "$tarball" -C carpool --strip-components=1 || exit 2
"$zig" cc -target "$processor-linux-gnu.2.28" -I"$mpi/include" -o hello "$tests/versions/hello.c" -L"$mpi/lib" \
    -Wl,-rpath,"$mpi/lib" -lmpi >compiled 2>&1 || leave_out "$zig does not compile: $(tail -n 1 compiled)"

# Programs of that processor run as if they were of this one, in namespaces of their own.
PATH=$tmp/carpool/bin:$mpi/bin:$PATH
QEMU_LD_PREFIX=$folder/root
export PATH QEMU_LD_PREFIX
emulated() { # command...
    # shellcheck disable=SC2016
    timeout -k 5 600 unshare -Urm sh -c 'handler=$1 && shift && mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
        cat "$handler" >/proc/sys/fs/binfmt_misc/register && exec "$@"' emulated "$handler" "$@" >out 2>err </dev/null
}
emulated carpool --version || leave_out "no emulation: $(tail -n 1 err)"
says() { # description, extended regular expression, command...
    what=$1 text=$2
    shift 2
    emulated "$@"
    code=$?
    if [ $code -eq 0 ] && grep -Eq -e "$text" out; then
        ok "$name: $what"
    else
        not_ok "$name: $what" && say "$(exit_text $code 600)" && say "$(tail -n 20 out err)"
    fi
}
says "carpool doctor: the launcher" "^launcher +$mpi/bin/mpiexec.*, hydra of MPICH" carpool doctor
check "$name: carpool doctor: the MPI" grep -Eq "^MPI +MPICH [0-9.]+.* $mpi/lib/libmpi.so.12\$" out
check "$name: carpool doctor: lanes" grep -q '^lanes  *can be made' out
options=$(sed -n '2s/^# options: //p' "$tests/golden/mixed-15.txt")
for plan in "$tests"/golden/mixed-15.*.plan; do # plans are those that this processor makes
    strategy=$(sed -n 's/^# strategy //p' "$plan" | head -n 1)
    # shellcheck disable=SC2086
    emulated carpool plan --dump --no-lanes --strategy "$strategy" $options "$tests/golden/mixed-15.txt"
    check "$name: carpool plan by $strategy" cmp -s out "$plan"
done

# Prints the same with the library as without it.
compare() { # ranks, description
    emulated mpiexec -n "$1" ./hello
    code=$?
    mv out plain
    [ $code -eq 0 ] || { skip "$name: $2" "mpiexec alone: $(exit_text $code 600): $(tail -n 1 err)" && return; }
    rm -f report.json
    says "$2" . mpiexec -n "$1" carpool run --yield --mode=force --report=report.json ./hello
    check "$name: $2 prints the same" cmp -s plain out
    check "$name: $2 has a report" test -s report.json
}
says "one rank without mpiexec" . carpool run ./hello
compare 1 "one rank"
compare 2 "two ranks"
says "two ranks: exchanges are carried" '"calls_planned": *[1-9]' cat report.json
done_testing
