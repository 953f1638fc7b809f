#!/bin/sh
# Builds the files of the wheel and of the tarball from a source archive, so that they run on any Linux with
# glibc 2.28: a compiler of PyPI (ziglang) links against the symbols of that version.
#
#   build.sh ARCHIVE WORK [PROCESSOR]      ARCHIVE: carpool-VERSION.tar.xz of `make dist`
#
# Leaves them in WORK/PROCESSOR/stage (bin, lib, libexec, share), and python3 with the tools in WORK/tools. pack.sh goes
# on from there. Wants PyPI, and a Debian 12: its static archives of hwloc, jansson and zlib are linked in (debian.sh).
# Those of much newer systems ask for symbols that glibc 2.28 does not have; then the linker says so. PROCESSOR, x86_64 or
# aarch64, is by default the one that it runs on; for another it wants Debian's binutils for that.
#
# Exit status: 0 done, 1 failed, 77 PyPI or Debian's packages cannot be reached.
set -u
glibc=2.28
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: $0 ARCHIVE WORK [PROCESSOR]" >&2; exit 2; }
fail() { # what, log
    echo "$0: $1" >&2
    [ $# -lt 2 ] || { echo "the end of $2:" >&2 && tail -n 15 "$2" >&2; }
    exit 1
}
[ -r "$1" ] || fail "cannot read $1: \`make dist\` writes it"
processor=${3:-$(uname -m)}
mkdir -p "$2/$processor" || exit 1
archive=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
tools=$(cd "$2" && pwd)/tools
work=$(cd "$2/$processor" && pwd)
name=$(basename "$archive" .tar.xz)
stage=$work/stage
triplet=$processor-linux-gnu
STRIP=strip host=
if [ "$processor" != "$(uname -m)" ]; then
    STRIP=$triplet-strip host=--host=$triplet # configure finds objcopy by it
    command -v "$STRIP" >/dev/null 2>&1 ||
        fail "no $STRIP: apt-get install binutils-$(echo "$triplet" | tr _ -)"
fi
export STRIP

sh "$here/tools.sh" "$tools" || exit
sh "$here/debian.sh" "$work/debian" "$processor" libhwloc-dev libjansson-dev uthash-dev zlib1g-dev libmpich-dev libmpich12 ||
    exit

WHEEL_ZIG=$("$tools/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__) + "/zig")') || exit 1
WHEEL_TARGET=$triplet.$glibc
WHEEL_INCLUDE=$work/debian/usr/include
WHEEL_ARCHIVES=$work/debian/usr/lib/$triplet
WHEEL_MPI="-isystem$WHEEL_INCLUDE/$triplet/mpich -L$WHEEL_ARCHIVES -lmpich"
export WHEEL_ZIG WHEEL_TARGET WHEEL_INCLUDE WHEEL_ARCHIVES WHEEL_MPI
mkdir -p "$work/bin" && cp "$here/cc" "$work/bin/cc" && cp "$here/cc" "$work/bin/mpicc" &&
    chmod +x "$work/bin/cc" "$work/bin/mpicc" || exit 1

# --- build
rm -rf "$work/source" "$work/build"
mkdir -p "$work/source" "$work/build" "$work/log" || exit 1
tar -xf "$archive" -C "$work/source" || fail "cannot unpack $archive"
source=$work/source/$name
[ -x "$source/configure" ] || fail "$archive has no $name/configure"
cd "$work/build" || exit 1
# hwloc's archive asks udev about disks: as in the library, nobody answers
"$work/bin/cc" -D_GNU_SOURCE -O2 -c "$source/shim/base/linked_in.c" -o "$work/linked_in.o" || exit 1
# shellcheck disable=SC2086
"$source/configure" $host --prefix=/usr/local CC="$work/bin/cc" MPICC="$work/bin/mpicc" MPIEXEC=mpiexec MPIFORT=no \
    --without-simgrid --without-metis CFLAGS="-O2 -g0 -DCPL_CALIBRATE_UNLINKED=true -ffile-prefix-map=$work/source=." \
    HWLOC_CFLAGS=-DNDEBUG HWLOC_LIBS="$WHEEL_ARCHIVES/libhwloc.a $work/linked_in.o" \
    JANSSON_CFLAGS=-DNDEBUG JANSSON_LIBS="$WHEEL_ARCHIVES/libjansson.a" \
    ZLIB_CFLAGS=-DNDEBUG ZLIB_LIBS="$WHEEL_ARCHIVES/libz.a" \
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
PATH=$tools/bin:$PATH
for file in "$stage"/bin/* "$stage"/lib/*.so "$stage"/lib/carpool/*.so "$stage"/libexec/carpool/*; do
    patchelf --remove-rpath "$file" || fail "cannot patch $file"
    # carpool calibrate gives its program the MPI of the launcher, so one binary serves all
    for needed in $(patchelf --print-needed "$file"); do
        case $needed in libmpi*) patchelf --remove-needed "$needed" "$file" || fail "cannot patch $file" ;; esac
    done
done
