#!/bin/sh
# Every .c and .h file is as clang-format-14 with .clang-format would write it. (Other versions write
# some things otherwise, and are not asked.)
#
#   check_style.sh      with top_srcdir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
format=${CLANG_FORMAT:-clang-format-14}
command -v "$format" >/dev/null 2>&1 || skip_all "no $format"
[ -e "$top_srcdir/.clang-format" ] || skip_all "no .clang-format"
make_scratch
cd "$top_srcdir" || exit 2

find array bench calibrate cli planner shim tests -name '*.[ch]' | sort >"$tmp/files"
xargs "$format" --dry-run -Werror <"$tmp/files" >"$tmp/out" 2>&1
sed -n 's/^\([^ :]*\.[ch]\):[0-9]*:[0-9]*: error: .*/\1/p' "$tmp/out" | sort -u >"$tmp/wrong"
check "there are files" test "$(wc -l <"$tmp/files")" -gt 400
none "all files are formatted: $format -i" "$(cat "$tmp/wrong")"
done_testing
