#!/bin/sh
# What users get Carpool as: the archive, which has all files that git has; the recipes' syntax. With
# TEST_WHOLE=yes also a Debian package of it, built and linted where debhelper and lintian are installed, and
# the archive built by itself (make distcheck, without the tests).
#
#   check_packages.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP. Nothing is optimised: this is about what is in the archive; all of it takes minutes.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/config.status" ] || skip_all "no build"
clean_environment
make_scratch
top_srcdir=$(cd "$top_srcdir" && pwd)
unset MAKEFLAGS MFLAGS MAKELEVEL
n_jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || n_jobs=2
version=$(sed -n 's/^AC_INIT(\[carpool\], \[\([0-9.]*\)\].*/\1/p' "$top_srcdir/configure.ac")

# --- versions are alike
check "a version" test -n "$version"
for file in CITATION.cff CHANGELOG.md debian/changelog doc/carpool.1 doc/carpool.7 doc/carpool_array.3; do
    check "the version in $file" grep -Fq "$version" "$top_srcdir/$file"
done
check "the version of the EasyBuild file" test -f "$top_srcdir/packaging/easybuild/Carpool-$version-gmpich.eb"
if command -v python3 >/dev/null 2>&1; then
    for file in packaging/spack/package.py "packaging/easybuild/Carpool-$version-gmpich.eb"; do
        check "syntax of $file" python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$top_srcdir/$file"
    done
else
    skip "syntax of the recipes" "no python3"
fi

# --- the archive, in a build directory of its own
mkdir "$tmp/build" && cd "$tmp/build" || exit 2
"$top_srcdir/configure" --without-simgrid --without-metis >configure.log 2>&1
check "configure" test $? -eq 0
target=dist
[ "${TEST_WHOLE:-no}" = no ] || target=distcheck
make -j "$n_jobs" $target TESTS='' check_PROGRAMS='' \
    AM_DISTCHECK_CONFIGURE_FLAGS='--without-simgrid --without-metis CFLAGS=-O0' >dist.log 2>&1 </dev/null
code=$?
check "make $target" test $code -eq 0
[ $code -eq 0 ] || say "$(tail -n 20 dist.log)"
tar tf "carpool-$version.tar.xz" | sed "s,^carpool-$version/,," | sort >archived
if git -C "$top_srcdir" ls-files >tracked 2>/dev/null; then
    none "the archive has all files" "$(grep -v '^\.git' tracked | sort | comm -23 - archived)"
else
    skip "the archive has all files" "no git"
fi

# --- the Debian package of that archive
why=
if [ "${TEST_WHOLE:-no}" = no ]; then
    why="tests/run.sh whole builds it"
elif ! command -v dpkg-buildpackage >/dev/null 2>&1 || ! command -v dh >/dev/null 2>&1; then
    why="no debhelper"
elif [ $code -ne 0 ]; then
    why="no archive"
fi
if [ -n "$why" ]; then
    skip "the Debian package" "$why"
    done_testing
    exit
fi
cd "$tmp" && tar xf "build/carpool-$version.tar.xz" && cd "carpool-$version" || exit 2
DEB_BUILD_OPTIONS="parallel=$n_jobs nocheck noautodbgsym noopt" dpkg-buildpackage -us -uc -b -d >../deb.log 2>&1 </dev/null
code=$?
check "the Debian package is built" test $code -eq 0
[ $code -eq 0 ] || say "$(tail -n 20 ../deb.log)"
if command -v lintian >/dev/null 2>&1; then
    lintian --allow-root --fail-on error "$tmp"/carpool_*.changes >"$tmp/lintian" 2>&1
    code=$?
    check "lintian finds no errors" test $code -eq 0
    [ $code -eq 0 ] || say "$(grep '^E:' "$tmp/lintian")"
else
    skip "lintian finds no errors" "no lintian"
fi
done_testing
