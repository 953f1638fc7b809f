#!/bin/sh
# The wheel, the tarball, or a release with all archives, from a source archive: `make wheel`, `make tarball`,
# `make release` call it.
#
#   make.sh wheel|tarball|release ARCHIVE WORK DIST
#
# ARCHIVE: carpool-VERSION.tar.xz of `make dist`. WORK keeps what is downloaded and built; it is built again when what
# is in the archive has changed. DIST gets the files. PROCESSORS in the environment, "x86_64 aarch64" or one of them, is by
# default the one that this runs on.
#
# Exit status: 0 done, 1 failed, 77 PyPI or Debian's packages cannot be reached.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 4 ] || { echo "usage: $0 wheel|tarball|release ARCHIVE WORK DIST" >&2; exit 2; }
what=$1 archive=$2 work=$3 dist=$4
[ -r "$archive" ] || { echo "$0: cannot read $archive: \`make dist\` writes it" >&2; exit 1; }
version=$(basename "$archive" .tar.xz | sed 's/^carpool-//')
processors=${PROCESSORS:-$(uname -m)}
mkdir -p "$work" "$dist" || exit 1
if [ "$what" = release ]; then
    kept=$(sh "$here/../version.sh") || exit 1
    [ "$kept" = "$version" ] ||
        { echo "$0: the archive has version $version, the sources $kept: run autoreconf and configure again" >&2; exit 1; }
    if grep -qx '## Not released' "$here/../../CHANGELOG.md"; then
        echo "$0: CHANGELOG.md has changes that are not released: sh packaging/version.sh NEW makes them a version's" >&2
        exit 1
    fi
fi

# what is in the archive, in whatever order and of whatever date
rm -rf "$work/look" && mkdir "$work/look" && tar -xf "$archive" -C "$work/look" || exit 1
contents=$(cd "$work/look" && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum)
# the date of the newest change that is told, whenever it is built
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y "$work/look/carpool-$version/CHANGELOG.md")}
export SOURCE_DATE_EPOCH
rm -rf "$work/look"
for processor in $processors; do
    mkdir -p "$work/$processor" || exit 1
    if [ "$contents" != "$(cat "$work/$processor/built" 2>/dev/null)" ]; then
        rm -f "$work/$processor/built"
        sh "$here/build.sh" "$archive" "$work" "$processor" || exit
        echo "$contents" >"$work/$processor/built"
    fi
done
pack() { # wheel, tarball...; $made is what a release has of them
    made=
    for processor in $processors; do
        platform=manylinux_2_28_$processor
        sh "$here/pack.sh" "$work/$processor/stage" "$work/tools" "$dist" "$version" "$platform" "$@" || exit
        made="$made carpool-$version-linux-$processor.tar.xz carpool-$version-py3-none-$platform.whl"
    done
}
case $what in
    wheel|tarball) pack "$what" ;;
    release)
        pack wheel tarball
        cp "$archive" "$dist/" && cd "$dist" || exit 1
        # shellcheck disable=SC2086
        sha256sum "carpool-$version.tar.xz" $made >SHA256SUMS && cat SHA256SUMS ;;
    *) echo "$0: '$what' is none of wheel, tarball, release" >&2; exit 2 ;;
esac
