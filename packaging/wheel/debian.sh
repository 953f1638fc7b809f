#!/bin/sh
# Packages of Debian for any processor, downloaded and unpacked into a folder, once: headers, static archives. They are
# of the release that this runs on; root is not needed, and this system's lists stay as they are.
#
#   debian.sh FOLDER PROCESSOR PACKAGE...      PROCESSOR: as `uname -m` names it
#
# Exit status: 0 done, 1 failed, 77 Debian's packages cannot be reached.
set -u
[ $# -ge 3 ] || { echo "usage: $0 FOLDER PROCESSOR PACKAGE..." >&2; exit 2; }
folder=$1 name=$2
case $name in
    x86_64) name=amd64 ;;
    aarch64) name=arm64 ;;
esac
shift 2
[ "$name $*" != "$(cat "$folder/unpacked" 2>/dev/null)" ] || exit 0
command -v apt-get >/dev/null 2>&1 || { echo "$0: no apt-get: build on Debian 12" >&2; exit 1; }
rm -rf "$folder" && mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/packages" &&
    cd "$folder" && here=$(pwd) && : >apt/status || exit 1
get() { # arguments of apt-get...
    apt-get -q -o APT::Architecture="$name" -o APT::Architectures="$name" -o Dir::State="$here/apt" \
        -o Dir::State::status="$here/apt/status" -o Dir::Cache="$here/apt" "$@" >>"$here/log" 2>&1 </dev/null
}
get update && cd packages && get download "$@" || {
    tail -n 3 "$here/log" >&2
    ! grep -Eq 'Temporary failure|Could not (resolve|connect)|[Tt]imed? ?out' "$here/log" || exit 77
    exit 1
}
for package in *.deb; do dpkg -x "$package" "$here" || exit 1; done
rm -rf "$here/apt" "$here/packages"
echo "$name $*" >"$here/unpacked"
