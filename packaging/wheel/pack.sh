#!/bin/sh
# Packs files that need no place of their own (build.sh) as a wheel and as a tarball.
#
#   pack.sh STAGE TOOLS DIST VERSION PLATFORM [wheel] [tarball]      default: both
#
# STAGE has bin, lib, libexec and share; the wheel puts them below the venv, as `make install` would. TOOLS is the
# venv of tools.sh. PLATFORM, as manylinux_2_28_x86_64, is what STAGE claims to run on: auditwheel must agree, or find an
# older one.
# Nothing may name a folder of this machine. The date of every file is SOURCE_DATE_EPOCH, if that is set.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 5 ] || { echo "usage: $0 STAGE TOOLS DIST VERSION PLATFORM [wheel] [tarball]" >&2; exit 2; }
fail() {
    echo "$0: $1" >&2
    exit 1
}
stage=$(cd "$1" && pwd) && tools=$(cd "$2" && pwd)/bin && mkdir -p "$3" && dist=$(cd "$3" && pwd) || exit 1
version=$4 platform=$5
shift 5
[ $# -gt 0 ] || set -- wheel tarball
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)}
export SOURCE_DATE_EPOCH
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
[ -x "$stage/bin/carpool" ] && [ -r "$stage/lib/libcarpool.so" ] || fail "$stage has no bin/carpool or no lib/libcarpool.so"

# The longest folders of this machine that a build could leave behind: of the sources, of the build, the user's.
for folder in "$(cd "$here/../.." && pwd)" "$(dirname "$stage")" "${HOME:-/}"; do
    [ "$folder" != / ] || continue
    found=$(grep -rlF -e "$folder/" "$stage")
    [ -z "$found" ] || fail "these files name $folder: $(echo "$found" | tr '\n' ' ')"
done

pack_wheel() {
    tree=$tmp/wheel/carpool-$version
    info=$tree/carpool-$version.dist-info
    mkdir -p "$tree/carpool" "$info/licenses" "$tree/carpool-$version.data" &&
        cp "$here"/carpool/*.py "$here/carpool/py.typed" "$tree/carpool" &&
        cp -R "$stage" "$tree/carpool-$version.data/data" &&
        cp "$stage/share/doc/carpool/LICENSE" "$info/licenses" || exit 1
    cp -R "$stage/share/doc/carpool/licenses/." "$info/licenses"
    cat >"$info/WHEEL" <<WHEEL
Wheel-Version: 1.0
Generator: carpool packaging/wheel
Root-Is-Purelib: false
Tag: py3-none-$platform
WHEEL
    {
        cat <<METADATA
Metadata-Version: 2.4
Name: carpool
Version: $version
Summary: Carries the messages of MPI programs in fewer ones: a library to preload, and its command
License-Expression: BSD-3-Clause
$(cd "$info/licenses" && printf 'License-File: %s\n' *)
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Topic :: System :: Distributed Computing
Description-Content-Type: text/markdown

METADATA
        cat "$here/description.md"
    } >"$info/METADATA"
    "$tools/wheel" pack "$tree" --dest-dir "$tmp" >"$tmp/log" 2>&1 || fail "wheel pack: $(cat "$tmp/log")"
    wheel=carpool-$version-py3-none-$platform.whl
    [ -r "$tmp/$wheel" ] || fail "wheel pack has made no $wheel: $(cat "$tmp/log")"
    case $platform in
        manylinux_*)
            "$tools/auditwheel" show "$tmp/$wheel" >"$tmp/audit" 2>&1 || fail "auditwheel: $(cat "$tmp/audit")"
            # the oldest platform that it could claim, which may be older: then the symbols of ours that are newer
            # are not used
            found=$(tr '\n' ' ' <"$tmp/audit" | sed -n 's/.*platform tag: *"\([a-z0-9_]*\)".*/\1/p')
            oldest=$(printf '%s\n' "$found" "$platform" | sort -V | head -n 1)
            case $found in
                manylinux_*) [ "$oldest" = "$found" ] || found= ;;
                *) found= ;;
            esac
            [ -n "$found" ] || fail "auditwheel finds that the wheel does not run on $platform: $(cat "$tmp/audit")"
            echo "auditwheel: $wheel is consistent with $found" ;;
    esac
    mv "$tmp/$wheel" "$dist/$wheel" && echo "$dist/$wheel"
}

pack_tarball() {
    name=carpool-$version-linux-$(echo "$platform" | sed -E 's/^(many)?linux_([0-9]+_[0-9]+_)?//')
    cp -R "$stage" "$tmp/$name" &&
        tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
            -cJf "$dist/$name.tar.xz" "$name" || fail "cannot write $dist/$name.tar.xz"
    echo "$dist/$name.tar.xz"
}

for what in "$@"; do
    case $what in
        wheel) pack_wheel ;;
        tarball) pack_tarball ;;
        *) fail "'$what' is neither wheel nor tarball" ;;
    esac
done
