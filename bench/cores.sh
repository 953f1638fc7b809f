#!/bin/sh
# What Carpool does on a machine with a core for each rank: exchanges as collectives, as messages and by persistent
# requests, on this machine and, where namespaces can be made, between four hosts on it (hosts.sh). Takes eight minutes.
#
#   sh bench/cores.sh [FOLDER]           the tables into FOLDER (default: cores-NAME, by the machine's name)
#   sh bench/cores.sh --packages         fetches the Debian packages that it needs, into ./packages
#
# For a machine without a network: run the second one on a machine with the same release of Debian or Ubuntu, and carry
# this tree with it. Where ./packages lies beside bench/, what is missing is installed from there.
set -u
started_in=$(pwd)
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
needed="autoconf automake libtool pkg-config make gcc libc6-dev mpich libmpich-dev libhwloc-dev libjansson-dev
    uthash-dev zlib1g-dev libmetis-dev iproute2 util-linux"

if [ "${1:-}" = --packages ]; then
    mkdir -p packages && cd packages || exit 1
    # all that they depend on, whether it is installed here or not
    # shellcheck disable=SC2086
    names=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances $needed | grep '^[a-z0-9]' | sort -u)
    for name in $names; do
        apt-get download "$name" >/dev/null 2>&1 || true # a virtual one
    done
    echo "$(find . -name '*.deb' | wc -l) packages in packages/"
    exit 0
fi

case ${1:-} in
    -*) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    /*) out=$1 ;;
    *) out=$started_in/${1:-cores-$(uname -n)} ;;
esac
n=$(getconf _NPROCESSORS_ONLN)
if [ "$n" -lt 2 ]; then
    echo "cores.sh: there is one processor; it takes two or more" >&2
    exit 2
fi
mkdir -p "$out" || exit 1
if [ -d packages ]; then
    wanted=
    for file in packages/*.deb; do
        name=$(basename "$file" | sed 's/_.*//')
        dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null | grep -q '^ii' || wanted="$wanted $file"
    done
    # shellcheck disable=SC2086
    [ -z "$wanted" ] || dpkg -i $wanted >"$out/packages.log" 2>&1 ||
        echo "cores.sh: not all packages could be installed: see $out/packages.log" >&2
else
    # shellcheck disable=SC2086
    sh tests/install-deps.sh $needed || exit 1
fi
build=$root/build/cores
mkdir -p "$build" || exit 1
echo "building in build/cores"
{
    { [ -e configure ] || autoreconf -fi; } && cd "$build" &&
        { [ -e config.status ] || "$root/configure"; } && make -j "$n"
} >"$out/build.log" 2>&1 || {
    echo "cores.sh: it does not build; the end of $out/build.log:" >&2
    tail -n 20 "$out/build.log" >&2
    exit 1
}
{
    echo "$(uname -srm), $n processors"
    lscpu 2>/dev/null | grep -E '^(Model name|Socket|NUMA node\(s\)|L3)'
    ${MPICHVERSION:-mpichversion} 2>/dev/null | head -n 1
    git -C "$root" rev-parse HEAD 2>/dev/null
} >"$out/machine.txt"

rows='^neighbors --bytes 64|^neighbors.*messages|^neighbors.*persistent|^spmv.*powerlaw|^cg'
echo "on this machine, $n ranks"
WARMUP=4 PROGRAMS=$rows sh bench/hosts.sh "$build" 3 "1x$n" | tee "$out/node.md"
if [ "$(id -u)" -eq 0 ] && unshare -n -p -u -i -m --fork true 2>/dev/null; then
    echo "between four hosts, $n ranks"
    WARMUP=4 PROGRAMS=$rows sh bench/hosts.sh "$build" 3 "4x$n" | tee "$out/hosts.md"
else
    echo "no namespaces can be made here: hosts.md is not there"
fi
