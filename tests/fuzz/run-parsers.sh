#!/bin/sh
# Builds the parsers with AddressSanitizer and UndefinedBehaviorSanitizer and runs parsers_fuzz.c on
# them: no crash, no report, no leak, errors with a text, invariants of what is accepted.
#
#   run-parsers.sh [N [SEED]]      with top_srcdir and top_builddir in the environment
#
# N (20000) executions in all, the same for the same SEED (1). Writes TAP; how many inputs each parser
# took and refused are comments. The input that failed is kept as parsers-fuzz.failed in the present
# directory.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
n=${1:-20000} seed=${2:-1}
source=$(cd "$top_srcdir" && pwd) || exit 2
build=$(cd "$top_builddir" && pwd) || exit 2
start=$(pwd)
cc=${FUZZ_CC:-gcc}
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
command -v "$cc" >/dev/null 2>&1 || skip_all "no $cc"
command -v pkg-config >/dev/null 2>&1 || skip_all "no pkg-config"
[ -e "$build/config.h" ] || skip_all "not configured"
clean_environment
make_scratch
cd "$tmp" || exit 2
echo 'int main(void) { return 0; }' >probe.c
# shellcheck disable=SC2086
"$cc" $sanitize probe.c -o probe 2>/dev/null && ./probe || skip_all "$cc has no sanitizers"

libraries="hwloc jansson"
! grep -q '^#define HAVE_ZLIB 1' "$build/config.h" || libraries="$libraries zlib"
# shellcheck disable=SC2086
cflags=$(pkg-config --cflags $libraries) && libs=$(pkg-config --libs $libraries) ||
    skip_all "no $libraries"
cflags="-std=c11 -O1 -g -D_GNU_SOURCE -ffp-contract=off -fno-omit-frame-pointer $sanitize $cflags"
export cc cflags source build

# The planner and the command, but for the commands that are not looked at and the main of command.c.
find "$source/planner" "$source/cli" "$source/tests/fuzz" "$source/shim/base/settings.c" -name '*.c' |
    sed -e '/\/cli\/\(command\|plan_tell\)\.c$/d' -e '/\/command_\(calibrate\|doctor\|list\|plan\|program\|run\|try\)\.c$/d' \
        -e '/\/fuzz\/\(calls\|pattern\)_[a-z]*\.c$/d' >sources
# shellcheck disable=SC2016
if xargs -P 2 -I '{}' sh -c '
    "$cc" $cflags -I"$source" -I"$build" -c "{}" -o "$(basename "{}" .c).o" ||
        exit 255' <sources >make.log 2>&1 &&
    # shellcheck disable=SC2086
    "$cc" $sanitize ./*.o -o parsers_fuzz $libs -lm >>make.log 2>&1; then
    echo "# built $(wc -l <sources) files"
else
    not_ok "the parsers are built with sanitizers"
    say "$(tail -n 15 make.log)"
    done_testing
    exit 1
fi

mkdir run && cd run || exit 2
ASAN_OPTIONS=detect_leaks=1:log_path=asan UBSAN_OPTIONS=print_stacktrace=1:log_path=ubsan \
    timeout -k 5 300 ../parsers_fuzz -n "$n" -s "$seed" >../out 2>/dev/null </dev/null
code=$?
sed '/^1\.\./d' ../out
tap_n=$(grep -c '^\(not \)\{0,1\}ok ' ../out)
tap_failed=$(grep -c '^not ok ' ../out)
if [ $code -ne 0 ]; then
    cp last "$start/parsers-fuzz.failed"
    not_ok "all inputs: exit status $code; the last one is in parsers-fuzz.failed"
    say "$(cat asan.* ubsan.* 2>/dev/null)"
else
    none "no report of a sanitizer, no leak" "$(cat asan.* ubsan.* 2>/dev/null)"
fi
done_testing
