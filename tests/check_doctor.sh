#!/bin/sh
# carpool doctor: what it says of the launcher and the MPI that are installed, and of launchers, MPIs and memory of
# our own that are missing, another's, or broken.
#
#   check_doctor.sh      with top_srcdir, top_builddir and MPIEXEC in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
top_builddir=$(cd "$top_builddir" && pwd)
carpool=$top_builddir/cli/carpool
for file in "$carpool" "$top_builddir/shim/.libs/libcarpool.so"; do
    [ -e "$file" ] || skip_all "no $file"
done
mpiexec=${MPIEXEC:-mpiexec.hydra}
clean_environment
make_scratch
cd "$tmp" || exit 2

doctor() { # settings of the environment..., --, arguments; leaves out, err and $code
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    timeout -k 5 60 env -u LD_LIBRARY_PATH $settings "$carpool" doctor "$@" >out 2>err </dev/null
    code=$?
}
says() { # description, exit status, extended regular expression...
    what=$1 status=$2 missing=
    shift 2
    for text in "$@"; do
        grep -Eq -e "$text" out err || missing="$missing
without $text"
    done
    if [ "$code" -eq "$status" ] && [ -z "$missing" ]; then
        ok "$what"
    else
        not_ok "$what"
        say "exit status $code$missing"
        say "$(cat out err)"
    fi
}

# --- launchers and MPIs of our own, each below a prefix
launcher() { # prefix, name; what it prints on standard input
    mkdir -p "$1/bin"
    { echo '#!/bin/sh' && while IFS= read -r line; do echo "echo '$line'"; done; } >"$1/bin/$2"
    chmod +x "$1/bin/$2"
}
library() { # path, text
    mkdir -p "$(dirname "$1")"
    cat >library.c <<END
#include <string.h>
int MPI_Get_library_version(char *text, int *length);
int MPI_Get_library_version(char *text, int *length)
{
    *length = (int)strlen(strcpy(text, "$2"));
    return 0;
}
END
    cc -shared -fPIC -o "$1" library.c
}
if ! command -v cc >/dev/null 2>&1; then skip_all "no cc"; fi
printf 'HYDRA build details:\n    Version:                                 9.8.7\n' | launcher mpich mpiexec
library mpich/lib/libmpi.so.12 'MPICH Version:      9.8.7\nMPICH Device:       ch9:wire\nMPICH CC: cc\n'
doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" -- -n 1
says "an MPICH beside its launcher" 0 "^launcher +$tmp/mpich/bin/mpiexec, hydra of MPICH 9.8.7\$" \
    "^MPI +MPICH 9.8.7, device ch9:wire, .*/mpich/lib/libmpi.so.12\$" '^cores +[0-9]+, for 1 ranks'
check "a line each, and the library's path" grep -q "^Carpool .*libcarpool.so\$" out
none "nothing to do, no advice" "$(grep -e '->' out)"

printf 'Intel(R) MPI Library for Linux* OS, Version 2099.1 Build 20990101\n' | launcher intel mpiexec.hydra
library intel/lib/libmpi.so.12 'Intel(R) MPI Library 2099.1 for Linux* OS\n'
printf 'another\n' | launcher intel mpiexec
doctor PATH="$tmp/intel/bin:/usr/bin:/bin" --
says "Intel MPI; mpiexec.hydra before mpiexec" 0 "bin/mpiexec.hydra, hydra of Intel MPI 2099.1\$" '^MPI +Intel MPI 2099.1, /'
ln -s ../mpich/bin view
mkdir linked && ln -s ../mpich/bin/mpiexec linked/mpiexec
doctor PATH="$tmp/linked:/usr/bin:/bin" --
says "a launcher by a link to its prefix" 0 '^MPI +MPICH 9.8.7'
printf 'HYDRA build details:\n    Version: 9.8.6\n' | launcher debian mpiexec
library debian/lib/x86_64-linux-gnu/libmpich.so.12 'MPICH Version:      9.8.6\n'
doctor PATH="$tmp/debian/bin:/usr/bin:/bin" --
says "a library in a folder of Debian's, without a device" 0 "^MPI +MPICH 9.8.6, .*/lib/x86_64-linux-gnu/libmpich.so.12\$"

printf 'mpiexec (Open MPI) 5.0.8\n' | launcher open mpiexec
library open/lib/libmpi.so.12 'Open MPI v5.0.8\n'
doctor PATH="$tmp/open/bin:/usr/bin:/bin" --
says "Open MPI" 1 "^launcher .*, Open MPI's\$" '-> Carpool does nothing in programs of Open MPI' '^MPI +Open MPI' \
    '-> Carpool serves programs of MPICH'
mkdir empty
doctor PATH="$tmp/empty" --
says "no launcher" 1 '^launcher +no mpiexec and no srun in PATH' '-> pip install mpich'
printf 'slurm 99.1\n' | launcher slurm srun
doctor PATH="$tmp/slurm/bin" --
check "srun where there is no mpiexec" grep -q "^launcher  *$tmp/slurm/bin/srun, Slurm 99.1\$" out
printf 'strange\n' | launcher strange mpiexec
mkdir -p strange/lib && echo rubbish >strange/lib/libmpi.so.12
doctor PATH="$tmp/strange/bin:/usr/bin:/bin" --
says "a library that cannot be loaded, a launcher without version" 1 'which does not tell its version' \
    'no library of MPICH or a relative: .*libmpi.so.12' '-> pip install mpich, or set LD_LIBRARY_PATH'
library crash/lib/libmpi.so.12 x
printf '#include <stdlib.h>\nstatic __attribute__((constructor)) void end(void) { abort(); }\n' >>library.c
cc -shared -fPIC -o crash/lib/libmpi.so.12 library.c
printf 'HYDRA\nVersion: 1\n' | launcher crash mpiexec
doctor PATH="$tmp/crash/bin:/usr/bin:/bin" --
says "a library that ends its process" 1 'it ends the process that loads it'

# --- Carpool beside an MPI, as in a venv
printf 'HYDRA\nVersion: 9.8.5\n' | launcher venv mpiexec
library venv/lib/libmpi.so.12 'MPICH Version:      9.8.5\n'
cp "$carpool" venv/bin/carpool && cp "$top_builddir/shim/.libs/libcarpool.so" venv/lib/libcarpool.so
cp -R venv "a venv"
installed=$carpool
carpool=$tmp/venv/bin/carpool
doctor PATH="$tmp/empty" --
says "a venv that is not activated" 0 "^launcher +$tmp/venv/bin/mpiexec, hydra of MPICH 9.8.5\$" \
    '-> it is not in PATH: activate the venv' "^MPI +MPICH 9.8.5, $tmp/venv/lib/libmpi.so.12\$"
doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" --
says "PATH comes before what is beside the command" 0 "^launcher +$tmp/mpich/bin/mpiexec, "
doctor PATH="$tmp/venv/bin:/usr/bin:/bin" HOME= -- -n 1
none "an activated venv, without HOME: no advice" "$(grep -e '->' out)"
carpool="$tmp/a venv/bin/carpool"
doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" --
says "a path with a space" 1 "^Carpool .*/a venv/lib/libcarpool.so\$" '-> it cannot be preloaded, since its path has a space'
carpool=$installed

# --- memory and cores
doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" -- --ranks=4000
says "more ranks than cores" 0 '^cores +[0-9]+, for 4000 ranks' '-> ranks outnumber cores.* carpool run --yield'
if [ -e "$top_builddir/bench/.libs/libyield.so" ]; then
    cp "$top_builddir/bench/.libs/libyield.so" another-name.so
    doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" LD_PRELOAD="$tmp/another-name.so" -- --ranks=4000
    says "more ranks than cores, and they yield" 0 '^cores .* ranks on this node, which give up the processor when they wait$'
    check "then nothing is advised" sh -c "! grep -q -- --yield out"
else
    skip "more ranks than cores, and they yield" "no libyield.so"
fi
doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" CARPOOL_LANES=off --
says "lanes are switched off" 0 '^lanes +are switched off by CARPOOL_LANES' '-> unset CARPOOL_LANES'
(ulimit -f 1 && PATH=$tmp/mpich/bin:/usr/bin:/bin && "$carpool" doctor) 2>&1 | cat >out # what it prints is no file
code=0
says "no room for lanes" 0 '^lanes +cannot be made: no room' '-> .*--shm-size'
doctor PATH="$tmp/mpich/bin:/usr/bin:/bin" -- -n 2
says "lanes can be made" 0 '^lanes +can be made; /dev/shm has [0-9]+ MB left'
none "nothing is left in /dev/shm" "$(find /dev/shm -name 'carpool-*' -newer library.c 2>/dev/null)"

# --- wrong arguments
doctor PATH="$PATH" -- --ranks=0
says "--ranks=0" 2 "^carpool doctor: --ranks takes a number from 1 to [0-9]+, not '0'\$"
doctor PATH="$PATH" -- --ranks=many
says "--ranks=many" 2 "not 'many'"
doctor PATH="$PATH" -- --rank
says "--ranks without a number" 2 '^carpool doctor: .*carpool doctor --help'
doctor PATH="$PATH" -- --cores
says "no such option" 2 "^carpool doctor: .*--cores.*carpool doctor --help"
doctor PATH="$PATH" -- ./app
says "an argument" 2 "^carpool doctor: takes no './app'"
doctor PATH="$PATH" -- --help
says "--help" 0 '^usage: .*carpool doctor' '--ranks=N'

# --- the MPI that is installed
if command -v "$mpiexec" >/dev/null 2>&1; then
    doctor PATH="$(dirname "$(command -v "$mpiexec")"):$PATH" --
    says "the installed MPI" 0 '^launcher +/.*, hydra of ' '^MPI +(MPICH|Intel MPI) [0-9.]+'
    timeout -k 5 60 "$mpiexec" -n 3 "$carpool" doctor >out 2>err </dev/null
    code=$?
    says "under mpiexec" 0 '^cores +[0-9]+, for 3 ranks on this node' '^launcher +/.*, hydra of '
    check "under mpiexec the first rank tells" test "$(grep -c '^Carpool' out)" -eq 1
else
    skip "the installed MPI" "no $mpiexec"
fi
done_testing
