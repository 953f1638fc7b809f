#!/bin/sh
# Copies what a build has made to the places that it has below a prefix, stripped: bin, lib, libexec, share.
#
#   stage.sh BUILD SOURCE STAGE      STAGE is made anew; STRIP in the environment, default strip
set -u
[ $# -eq 3 ] || { echo "usage: $0 BUILD SOURCE STAGE" >&2; exit 2; }
build=$1 source=$2 stage=$3
rm -rf "$stage"
place() { # mode, from, to
    mkdir -p "$stage/$(dirname "$3")" && cp "$2" "$stage/$3" && chmod "$1" "$stage/$3" ||
        { echo "$0: cannot copy $2 to $stage/$3" >&2; exit 1; }
}
place 755 "$build/cli/carpool" bin/carpool
place 755 "$build/shim/.libs/libcarpool.so" lib/libcarpool.so
place 755 "$build/shim/.libs/libcarpool_abi.so" lib/libcarpool_abi.so
place 755 "$build/bench/.libs/libyield.so" lib/carpool/libyield.so
place 755 "$build/calibrate/carpool-calibrate" libexec/carpool/carpool-calibrate
for page in 1 7; do place 644 "$source/doc/carpool.$page" "share/man/man$page/carpool.$page"; done
place 644 "$source/doc/carpool.bash" share/bash-completion/completions/carpool
for file in LICENSE README.md CHANGELOG.md doc/limits.md doc/report.schema.json; do
    place 644 "$source/$file" "share/doc/carpool/$(basename "$file")"
done
for package in libhwloc-dev libjansson-dev zlib1g-dev; do # of what is linked in
    place 644 "/usr/share/doc/$package/copyright" "share/doc/carpool/licenses/$package"
done
for file in bin/carpool lib/libcarpool.so lib/libcarpool_abi.so lib/carpool/libyield.so libexec/carpool/carpool-calibrate; do
    ${STRIP:-strip} --strip-unneeded "$stage/$file" || exit 1
done
