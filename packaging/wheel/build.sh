#!/bin/sh
# Builds the files of the wheel and of the tarball from a source archive, so that they run on any Linux with
# glibc 2.28: a compiler of PyPI (ziglang) links against the symbols of that version.
#
#   build.sh ARCHIVE WORK      ARCHIVE: carpool-VERSION.tar.xz of `make dist`
#
# Leaves them in WORK/stage (bin, lib, libexec, share), and python3 with the tools in WORK/tools. pack.sh goes on
# from there. Wants a Debian 12 (its static archives of hwloc, jansson and zlib are linked in; those of much newer
# systems ask for symbols that glibc 2.28 does not have, then the linker says so), MPICC in the environment
# (default mpicc.mpich) for its mpi.h, and PyPI. Builds for the processor it runs on.
#
# Exit status: 0 done, 1 failed, 77 PyPI cannot be reached.
set -u
glibc=2.28
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: $0 ARCHIVE WORK" >&2; exit 2; }
fail() { # what, log
    echo "$0: $1" >&2
    [ $# -lt 2 ] || { echo "the end of $2:" >&2 && tail -n 15 "$2" >&2; }
    exit 1
}
[ -r "$1" ] || fail "cannot read $1: \`make dist\` writes it"
mkdir -p "$2" || exit 1
archive=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(cd "$2" && pwd)
name=$(basename "$archive" .tar.xz)
stage=$work/stage
mpicc=${MPICC:-mpicc.mpich}

sh "$here/tools.sh" "$work/tools" || exit
for package in hwloc jansson zlib; do
    pkg-config --exists "$package" || fail "no headers of $package: install Debian's lib*-dev packages (doc/install.md)"
done

# --- headers, apart from those of this system's glibc
headers=$(dpkg -L libhwloc-dev libjansson-dev uthash-dev zlib1g-dev 2>/dev/null | grep '^/usr/include/.*\.h$')
[ -n "$headers" ] || fail "dpkg knows no libhwloc-dev, libjansson-dev, uthash-dev, zlib1g-dev: build on Debian 12"
rm -rf "$work/include"
for header in $headers; do
    place=$work/include/$(echo "$header" | sed -e 's,^/usr/include/,,' -e 's,^[a-z0-9_]*-linux-gnu/,,')
    mkdir -p "$(dirname "$place")" && cp -L "$header" "$place" || exit 1
done

WHEEL_ZIG=$("$work/tools/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__) + "/zig")') || exit 1
WHEEL_TARGET=$(uname -m)-linux-gnu.$glibc
WHEEL_INCLUDE=$work/include
WHEEL_MPI=$($mpicc -show 2>/dev/null | tr ' ' '\n' | grep -E '^-[ILl]' | sed 's/^-I/-isystem/' | tr '\n' ' ')
[ -n "$WHEEL_MPI" ] || fail "$mpicc -show tells no flags: install Debian's libmpich-dev, or set MPICC to MPICH's mpicc"
export WHEEL_ZIG WHEEL_TARGET WHEEL_INCLUDE WHEEL_MPI
mkdir -p "$work/bin" && cp "$here/cc" "$work/bin/cc" && cp "$here/cc" "$work/bin/mpicc" &&
    chmod +x "$work/bin/cc" "$work/bin/mpicc" || exit 1

# --- build
rm -rf "$work/source" "$work/build"
mkdir -p "$work/source" "$work/build" "$work/log" || exit 1
tar -xf "$archive" -C "$work/source" || fail "cannot unpack $archive"
source=$work/source/$name
[ -x "$source/configure" ] || fail "$archive has no $name/configure"
cd "$work/build" || exit 1
archives=$(dirname "$(cc -print-file-name=libhwloc.a)")
for library in hwloc jansson z; do
    [ -e "$archives/lib$library.a" ] || fail "no static archive lib$library.a in $archives: Debian's -dev packages have it"
done
# hwloc's archive asks udev about disks: as in the library, nobody answers
"$work/bin/cc" -D_GNU_SOURCE -O2 -c "$source/shim/base/linked_in.c" -o "$work/linked_in.o" || exit 1
"$source/configure" --prefix=/usr/local CC="$work/bin/cc" MPICC="$work/bin/mpicc" MPIEXEC=mpiexec MPIFORT=no \
    --without-simgrid --without-metis CFLAGS="-O2 -g0 -DCPL_CALIBRATE_UNLINKED=true -ffile-prefix-map=$work/source=." \
    HWLOC_CFLAGS=-DNDEBUG HWLOC_LIBS="$archives/libhwloc.a $work/linked_in.o" JANSSON_CFLAGS=-DNDEBUG JANSSON_LIBS="$archives/libjansson.a" \
    ZLIB_CFLAGS=-DNDEBUG ZLIB_LIBS="$archives/libz.a" \
    >"$work/log/configure" 2>&1 || fail "configure fails" "$work/log/configure"
grep -q 'linked into a shared library... yes' "$work/log/configure" ||
    fail "hwloc, jansson and zlib cannot be linked into a shared library; see $work/build/config.log"
build() { # folder, target...
    make -j "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -C "$@" >>"$work/log/make" 2>&1 </dev/null || fail "make -C $* fails" "$work/log/make"
}
: >"$work/log/make"
build planner libplanner.la
build shim
build cli carpool
build calibrate
build bench libyield.la

# --- the files
sh "$here/stage.sh" "$work/build" "$source" "$stage" || exit 1
PATH=$work/tools/bin:$PATH
for file in "$stage"/bin/* "$stage"/lib/*.so "$stage"/lib/carpool/*.so "$stage"/libexec/carpool/*; do
    patchelf --remove-rpath "$file" || fail "cannot patch $file"
    # carpool calibrate gives its program the MPI of the launcher, so one binary serves all
    for needed in $(patchelf --print-needed "$file"); do
        case $needed in libmpi*) patchelf --remove-needed "$needed" "$file" || fail "cannot patch $file" ;; esac
    done
done
