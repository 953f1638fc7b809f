#!/bin/sh
# Tries the library with other MPIs than the one that it was built with: those of tests/versions/list.
#
#   tests/versions.sh [small | whole] [NAME...]      NAME: rows of the list, default all
#
# Builds in build/test, and what each MPI needs in build/versions, where downloads stay too. small: the MPIs
# and test lines with the flag `small`, in a few minutes; otherwise all MPIs with a third of
# the lines; whole: with all lines, and libraries that are built with each of them (run-version.sh).
# What cannot be had is skipped. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
choice=some
case ${1:-} in small|whole) choice=$1 && shift ;; esac
build=$(pwd)/build/test
# shellcheck source=tests/build.sh disable=SC1091
. tests/build.sh
sh tests/install-deps.sh mmdebstrap python3-pip python3-venv ||
    echo "without mmdebstrap there are no suites of Debian, without pip no wheels"
prepare
step "make"
build_in . make.log
run_versions "$choice" "$@"
show_results
