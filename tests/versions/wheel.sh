#!/bin/sh
# Tries Carpool's wheel as its user does: in a venv of its own, beside an MPI of PyPI and mpi4py.
#
#   wheel.sh NAME WHEEL FOLDER REQUIREMENT...      NAME: of the results; REQUIREMENT: as mpich==5.0.2
#
# FOLDER gets the venv, which is made anew, and stays. The environment of this script is that of the programs.
# Writes TAP; what pip cannot have is skipped. Exits with 1 when a test failed.
set -u
[ $# -ge 4 ] || { echo "usage: $0 NAME WHEEL FOLDER REQUIREMENT..." >&2; exit 2; }
tests=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/tap.sh disable=SC1091
. "$tests/tap.sh"
name=$1 wheel=$2 folder=$3
shift 3
clean_environment
make_scratch
mkdir -p "$folder" || exit 2
venv=$(cd "$folder" && pwd -P)/venv
rm -rf "$venv"
install() { # arguments of pip install...
    "$venv/bin/pip" install -q --disable-pip-version-check --no-compile --retries 1 "$@" >"$tmp/pip" 2>&1 </dev/null
}
leave_out() { # reason
    skip "$name" "$1"
    done_testing
    exit
}
python3 -m venv "$venv" >"$tmp/venv" 2>&1 || leave_out "no venv: $(tail -n 1 "$tmp/venv")"
install mpi4py "$@" || leave_out "pip cannot install $*: $(tail -n 1 "$tmp/pip")"
files() { # of the venv, but for what Python compiles
    find "$venv" ! -type d ! -name "*.pyc" | sort
}
files >"$tmp/before"
install --no-index "$wheel"
code=$?
check "$name: pip install" test $code -eq 0
[ $code -eq 0 ] || say "$(cat "$tmp/pip")"
files | comm -13 "$tmp/before" - >"$tmp/files"
bytes=$(tr '\n' '\0' <"$tmp/files" | du -cb --files0-from=- | tail -n 1 | cut -f 1)
check "$name: less than 8 MB ($bytes bytes)" test "$bytes" -lt 8000000

# --- as its user would, in the venv
PATH=$venv/bin:$PATH
PYTHONDONTWRITEBYTECODE=yes
export PATH PYTHONDONTWRITEBYTECODE
unset PYTHONPATH LD_LIBRARY_PATH LD_PRELOAD
cd "$tmp" || exit 2
quietly() { # description, command...
    what=$1
    shift
    timeout -k 5 120 "$@" >out 2>err </dev/null
    code=$?
    check "$name: $what" test $code -eq 0
    [ $code -eq 0 ] || { say "$(exit_text $code 120)" && say "$(tail -n 8 out err)"; }
}
says() { # description, extended regular expression, command...
    text=$2
    what=$1
    shift 2
    timeout -k 5 120 "$@" >out 2>err </dev/null
    if grep -Eq -e "$text" out; then ok "$name: $what"; else not_ok "$name: $what" && say "$(tail -n 20 out err)"; fi
}
python=$venv/bin/python
library=$("$python" -c 'import carpool; print(carpool.library())') # to be compared with what the command says
check "$name: carpool.library()" test "$library" = "$venv/lib/libcarpool.so"
says "python -m carpool" "^$(carpool --version)\$" "$python" -m carpool --version
says "the man page" '^.TH CARPOOL 1' cat "$venv/share/man/man1/carpool.1"
says "carpool doctor: the library" "^Carpool +[0-9.]+, $library\$" carpool doctor
says "carpool doctor: the venv's launcher" "^launcher +$venv/bin/mpiexec.*, hydra of" carpool doctor
says "carpool doctor: the venv's MPI" "^MPI +(MPICH|Intel MPI) [0-9.]+.* $venv/lib/libmpi.so.12" carpool doctor

# A program of four ranks, without Carpool and with it: prints the same; a report in mode force.
compare() { # description, program...
    what=$1
    shift
    yield=$venv/lib/carpool/libyield.so # ranks outnumber cores here
    timeout -k 5 120 mpiexec -n 4 -genv LD_PRELOAD "$yield" "$@" >plain 2>err </dev/null
    code=$?
    rm -f report.json
    [ $code -eq 0 ] || { skip "$name: $what" "mpiexec alone: $(exit_text $code 120): $(tail -n 1 err)" && return 1; }
    quietly "$what runs with Carpool" mpiexec -n 4 carpool run --yield --mode=force --report=report.json "$@"
    check "$name: it prints the same" cmp -s plain out
    cmp -s plain out || say "$(diff plain out)"
}
carried() { # kind of exchange: its calls that were carried, as the report tells
    "$python" -c '
import carpool, sys
patterns = carpool.load_report("report.json")["patterns"]
print(sum(p["calls_planned"] for p in patterns if sys.argv[1] in p["kind"]))' "$1"
}
if compare "Python" "$python" "$tests/versions/carried.py"; then
    for kind in Neighbor_alltoallv pt2pt; do
        n=$(carried $kind)
        check "$name: Python: $kind is carried ($n calls)" test "${n:-0}" -gt 0
    done
fi
began=$(date +%s)
quietly "four lines of Python" mpiexec -n 2 carpool run --report=short.json "$python" "$tests/versions/short.py"
check "$name: they take less than a minute" test $(($(date +%s) - began)) -lt 60
says "the report tells what was carried, or why not" 'Alltoallv' carpool report short.json
says "a file that is no report" '^/dev/null is no report of Carpool' "$python" -c '
import carpool
try:
    carpool.load_report("/dev/null")
except ValueError as error:
    print(error)'
quietly "four lines, in mode force" mpiexec -n 2 carpool run --yield --mode=force --report=short.json "$python" "$tests/versions/short.py"
says "four lines, in mode force: carried to the end" '^Alltoallv .* calls: carried by [^;]*$' carpool report short.json
for mpicc in mpicc mpicc_abi; do
    [ -x "$venv/bin/$mpicc" ] || continue
    quietly "$mpicc compiles" "$venv/bin/$mpicc" -std=c11 -o "hello-$mpicc" "$tests/versions/hello.c"
    if [ -x "hello-$mpicc" ] && compare "C by $mpicc" "./hello-$mpicc"; then
        n=$(carried eighbor)
        check "$name: C by $mpicc: neighborhood collectives are carried ($n calls)" test "${n:-0}" -gt 0
    fi
done
quietly "carpool calibrate" mpiexec -n 2 carpool calibrate --seconds 0.5 --output machine
check "$name: a machine file" grep -q '^socket.send_us\|^node.send_us' machine

# --- where less is set up: the venv is not activated and there is no HOME; a home that cannot be written; no mpiexec
mkdir "$tmp/none"
says "carpool doctor: not activated" "-> it is not in PATH: activate the venv" env PATH="$tmp/none" "$python" -m carpool doctor
quietly "not activated, no HOME" env -u HOME PATH="$tmp/none" "$venv/bin/mpiexec" -n 2 \
    "$python" -m carpool run --report=bare.json "$python" "$tests/versions/short.py"
says "not activated, no HOME: a report" 'Alltoallv' carpool report bare.json
quietly "a home that cannot be written" env HOME=/proc mpiexec -n 2 carpool run --report=home.json "$python" "$tests/versions/short.py"
says "a home that cannot be written: a report" 'Alltoallv' carpool report home.json
quietly "one rank without mpiexec" "$python" -m carpool run --report=one.json "$python" "$tests/versions/short.py"
check "$name: one rank without mpiexec: a report" test -s one.json

# --- where pip puts it elsewhere
install --no-index --no-deps --target "$tmp/target" "$wheel"
env PYTHONPATH="$tmp/target" "$python" -m carpool run true >out 2>err
check "$name: pip's --target: python -m carpool says what to do" grep -q "install the wheel by .pip install. into a venv" err
if PYTHONUSERBASE=$tmp/user PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install -q --user --no-index "$wheel" >pip 2>&1 </dev/null; then
    says "pip's --user: the library" "^$tmp/user/lib/libcarpool.so\$" env PYTHONUSERBASE="$tmp/user" python3 -c '
import carpool
print(carpool.library())'
    says "pip's --user: the command preloads it" "$tmp/user/lib/libcarpool.so" "$tmp/user/bin/carpool" run env
else
    skip "$name: pip's --user" "$(tail -n 1 pip)"
fi

# --- and away
cd / || exit 2
"$venv/bin/pip" uninstall -q -y --disable-pip-version-check carpool >"$tmp/pip" 2>&1 </dev/null
check "$name: pip uninstall" test $? -eq 0
none "$name: pip uninstall leaves no file" "$(files | comm -13 "$tmp/before" -)"
done_testing
