#!/bin/sh
# The wheel and the tarball, packed of what this build has made: as packaging/wheel packs them, but for this system
# only. In a venv with an MPICH of PyPI a program in Python is carried, and pip takes all away again
# (versions/wheel.sh). `tests/run.sh versions` does this with other MPIs, and with a wheel for any Linux.
#
#   check_wheel.sh      with top_srcdir, top_builddir and MPICC in the environment
#
# Writes TAP. Skipped where PyPI cannot be reached; takes a minute.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
wheel=$top_srcdir/packaging/wheel
for file in cli/carpool shim/.libs/libcarpool.so shim/.libs/libcarpool_abi.so bench/.libs/libyield.so calibrate/carpool-calibrate; do
    [ -e "$top_builddir/$file" ] || skip_all "no $file"
done
[ -d "$top_builddir/shim/linked-in" ] || skip_all "no static archives of hwloc, jansson and zlib"
command -v python3 >/dev/null 2>&1 || skip_all "no python3"
! nm -D "$top_builddir/shim/.libs/libcarpool.so" 2>/dev/null | grep -q '__asan\|__gcov' || skip_all "not an ordinary build"
clean_environment
make_scratch
cd "$tmp" || exit 2

# --- wrong use of the scripts
refuses() { # description, text, script, arguments...
    what=$1 text=$2 script=$3
    shift 3
    if sh "$wheel/$script" "$@" >out 2>&1; then
        not_ok "$what: it succeeds"
    else
        check "$what" grep -Fq -e "$text" out
    fi
}
refuses "make.sh without an archive" "cannot read none.tar.xz: \`make dist\` writes it" make.sh wheel none.tar.xz work dist
refuses "pack.sh without files" "has no bin/carpool" pack.sh "$tmp" "$tmp" dist 1.0 linux_x86_64
none "the version is the same everywhere" "$(sh "$top_srcdir/packaging/version.sh" 2>&1 >/dev/null)"
mkdir -p copy/packaging && for file in configure.ac Makefile.am CHANGELOG.md CITATION.cff debian doc packaging/easybuild packaging/version.sh; do
    mkdir -p "copy/$(dirname "$file")" && cp -R "$top_srcdir/$file" "copy/$file"
done
sed -i 's/^## .*/## Not released/;t done;b;:done;n;b done' copy/CHANGELOG.md
chmod -R u+w copy
check "a new version is set everywhere" test "$(sh copy/packaging/version.sh 98.7.6 2026-11-28 2>&1)" = 98.7.6
check "the change log has it" grep -qx '## 98.7.6 (28 November 2026)' copy/CHANGELOG.md
sed -i 's/^version: .*/version: 1.2.3/' copy/CITATION.cff
sh copy/packaging/version.sh >out 2>&1
check "a version that differs is named" grep -q 'CITATION.cff does not have the version 98.7.6' out
sh copy/packaging/version.sh 1.x >out 2>&1
check "no version" grep -q "'1.x' is no version such as 1.2.3" out

# --- pack
sh "$wheel/tools.sh" "$tmp/tools" wheel >out 2>&1
code=$?
if [ $code -ne 0 ]; then
    skip "the wheel" "no tools of PyPI: $(tail -n 1 out)"
    done_testing
    exit
fi
version=$(sh "$top_srcdir/packaging/version.sh")
sh "$wheel/stage.sh" "$top_builddir" "$top_srcdir" "$tmp/stage" >out 2>&1
check "the files" test $? -eq 0
platform=linux_$(uname -m)
file=$tmp/dist/carpool-$version-py3-none-$platform.whl
sh "$wheel/pack.sh" "$tmp/stage" "$tmp/tools" "$tmp/dist" "$version" "$platform" >out 2>&1
check "wheel and tarball are packed" test $? -eq 0 -a -s "$file"
[ -s "$file" ] || say "$(cat out)"
SOURCE_DATE_EPOCH=1000000000 sh "$wheel/pack.sh" "$tmp/stage" "$tmp/tools" "$tmp/one" "$version" "$platform" >out 2>&1
SOURCE_DATE_EPOCH=1000000000 sh "$wheel/pack.sh" "$tmp/stage" "$tmp/tools" "$tmp/two" "$version" "$platform" >out 2>&1
check "the same files make the same packages" diff -r one two
cp -R stage spoilt && echo "$top_srcdir/shim" >>spoilt/share/doc/carpool/limits.md
refuses "a path of this machine" "these files name $top_srcdir" pack.sh "$tmp/spoilt" "$tmp/tools" "$tmp/none" 1.0 "$platform"

# --- the tarball, anywhere
mkdir "an odd place" && tar -xf "dist/carpool-$version-linux-$(uname -m).tar.xz" -C "an odd place" --strip-components=1
"an odd place/bin/carpool" --version >out 2>&1
check "the tarball's command runs" grep -qx "carpool $version" out
mkdir elsewhere && tar -xf "dist/carpool-$version-linux-$(uname -m).tar.xz" -C elsewhere --strip-components=1
elsewhere/bin/carpool run sh -c 'echo "$LD_PRELOAD"' >out 2>err
check "it finds its library by its own place" grep -qx "$(pwd -P)/elsewhere/lib/libcarpool.so" out

# --- the wheel
sh "$top_srcdir/tests/versions/wheel.sh" "MPICH 4.3.2" "$file" "$tmp/venv" mpich==4.3.2 >relayed 2>err
while read -r line; do # its results become results of this one
    case $line in
        "ok "*" # SKIP "*) line=${line#* - } && skip "${line% # SKIP *}" "${line##* # SKIP }" ;;
        "ok "*) ok "${line#* - }" ;;
        "not ok "*) not_ok "${line#* - }" ;;
        "#"*) echo "$line" ;;
    esac
done <relayed
check "the wheel's test came to its end" grep -q '^1\.\.[0-9]' relayed
done_testing
