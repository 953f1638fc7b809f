#!/bin/sh
# The promise: programs print under the preload, byte for byte, what they print without it, and end.
#
#   run-promise.sh BUILDDIR LIBCARPOOL YIELDLIB [--all] [FILTER]
#
# BUILDDIR holds the programs, YIELDLIB is preloaded in all runs (waiting ranks give way). FILTER is an
# extended regular expression for "program arguments". Each line of `cases` runs without the library
# and then with it under one setting, which goes round from line to line, so that all combinations of mode,
# strategy, CARPOOL_EMBED and nodes get their turn, and forced; with FILTER or TEST_WHOLE=yes under six settings.
# --all: all of them with all numbers of ranks.
# TEST_LIST replaces the table, TEST_TIMEOUT the seconds of a run, MPIEXEC the launcher; TEST_PRELOAD is
# preloaded before all else. TEST_SETTINGS=one: only the first of the settings, with the first number of ranks.
# TEST_BROKEN_MPI: cases that MPI alone fails are left out.
#
# Output and exit code must be those of the run without. Standard error may have warnings of the
# library. Writes TAP; exits with 1 when a test failed.
set -uf
# shellcheck source=tests/tap.sh disable=SC1091
. "$(dirname "$0")/../tap.sh"
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB [--all] [FILTER]" >&2; exit 2; }
absolute() { # a file
    echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}
build=$(cd "$1" && pwd) library=$(absolute "$2") yield=$(absolute "$3")
shift 3
every=no
[ "${1:-}" != --all ] || { every=yes; shift; }
filter=${1:-.}
whole=${TEST_WHOLE:-no}
[ "$filter" = . ] || whole=yes
list=$(absolute "${TEST_LIST:-$(dirname "$0")/cases}")
limit=${TEST_TIMEOUT:-60}
first=${TEST_PRELOAD:+$TEST_PRELOAD:}
mpiexec=${MPIEXEC:-mpiexec.hydra}
command -v "$mpiexec" >/dev/null 2>&1 || skip_all "no $mpiexec"
[ -e "$library" ] || skip_all "no $library"

# With real-time priority, which YIELDLIB asks for, ranks that wait at the start hold up those that are
# still starting for a second. Without the right to it the runs are five times as fast.
gently=
drop="setpriv --inh-caps=-sys_nice --bounding-set=-sys_nice"
# shellcheck disable=SC2086
$drop true 2>/dev/null && gently=$drop

clean_environment
make_scratch
mkdir "$tmp/cwd"
cd "$tmp/cwd" || exit 2

modes="force auto force profile auto off" # those that change something more often
strategies="direct share vpt:2 vpt:3 node balance"
embeddings="off exact all"
n_combinations=216 # 6 * 6 * 3 * 2
turn=0             # of the settings, goes on from line to line

# There are many runs: each starts few processes besides its ranks.

pick() { # number, words...; the word of that number, from 0, becomes $picked
    shift $(($1 + 1))
    picked=$1
}

has() { # flag
    case " $flags " in *" $1 "*) return 0 ;; esac
    return 1
}

launch() { # output, nodes, preload, options of mpiexec...; the program is $program $args on $n ranks
    out=$1 nodes=$2 preload=$3
    shift 3
    [ "$nodes" = 1 ] || set -- "$@" -genv MPIR_CVAR_NUM_CLIQUES "$nodes"
    find "$tmp/cwd" -mindepth 1 -delete # nothing of the last run
    # shellcheck disable=SC2086
    if has mpmd; then
        half=$((n / 2))
        timeout -k 5 "$limit" $gently "$mpiexec" "$@" -n "$half" -env LD_PRELOAD "$first$preload" \
            "$build/$program" $args : -n $((n - half)) -env LD_PRELOAD "$first$yield" \
            "$build/$program" $args >"$out.out" 2>"$out.err" </dev/null
    else
        timeout -k 5 "$limit" $gently "$mpiexec" "$@" -n "$n" -genv LD_PRELOAD "$first$preload" \
            "$build/$program" $args >"$out.out" 2>"$out.err" </dev/null
    fi
    code=$?
    # the launcher tells process numbers when a rank exits with another code than 0
    [ "$code" -eq 0 ] || sed -i '/^=\{9,\}/,$d' "$out.out"
    echo "$code" >"$out.code"
}

reference() { # nodes; once for each line, number of ranks and nodes; fails when it has failed
    ref=$tmp/ref-$n-$1
    if ! [ -e "$ref.code" ]; then
        launch "$ref" "$1" "$yield"
        wanted=$(echo " $flags " | sed -n 's/.* exit:\([0-9]*\) .*/\1/p')
        if [ "$code" -ne "${wanted:-0}" ] || grep -q WRONG "$ref.out"; then
            if has optional || [ -n "${TEST_BROKEN_MPI:-}" ]; then
                reason=$(grep -iv '^abort' "$ref.err" | grep -i -m 1 error | cut -c 1-80)
                skip "$what, $n ranks, $1 nodes" "MPI alone cannot: ${reason:-exit code $code}"
            else
                not_ok "$what, $n ranks, $1 nodes, without the library"
                say "$(exit_text "$code" "$limit")"
                say "$(cat "$ref.out" "$ref.err")"
            fi
            echo failed >"$ref.code"
        fi
    fi
    read -r ref_code <"$ref.code"
    [ "$ref_code" != failed ]
}

under() { # mode, strategy, embedding, nodes
    reference "$4" || return
    launch "$tmp/now" "$4" "$library:$yield" -genv CARPOOL_MODE "$1" -genv CARPOOL_STRATEGY "$2" \
        -genv CARPOOL_EMBED "$3"
    describe="$what, $n ranks, $1 $2 embed=$3 nodes=$4"
    if [ "$code" -eq "$ref_code" ] && cmp -s "$ref.out" "$tmp/now.out"; then
        ok "$describe"
    else
        not_ok "$describe"
        say "$(exit_text "$code" "$limit")"
        say "$(diff "$ref.out" "$tmp/now.out")"
        say "$(grep -v '^carpool\[[^]]*\] warn' "$tmp/now.err" | head -5)"
    fi
}

number() { # which of the numbers of ranks; $n becomes that
    # shellcheck disable=SC2086
    set -- "$1" $(echo "$ranks" | tr , ' ')
    which=$1
    shift
    pick $((which % $#)) "$@"
    n=$picked
}

combination() { # number; under it, unless the line is not for it
    # shellcheck disable=SC2086
    pick $(($1 % 6)) $modes && mode=$picked
    # shellcheck disable=SC2086
    pick $(($1 / 6 % 6)) $strategies && strategy=$picked
    # shellcheck disable=SC2086
    pick $(($1 / 36 % 3)) $embeddings && embedding=$picked
    nodes=1
    [ $(($1 / 108)) -eq 0 ] || nodes=3
    if [ "$embedding" = all ] && has exact; then # it may change the bits of sums
        embedding=exact
    fi
    under "$mode" "$strategy" "$embedding" "$nodes"
}

next_combination() {
    turn=$((turn + 1))
    number $((turn + turn / 5)) # not in step with the modes
    combination $((turn * 95 % n_combinations)) # 95 and 216 have no common factor
}

by_default() { # nodes: forced, and all else as it is by default
    under force auto exact "$1"
}

few() { # settings for this line
    if [ "${TEST_SETTINGS:-all}" = one ]; then
        number 0
        under force vpt:2 off 1
        return
    fi
    if [ $whole = yes ]; then
        number 0
        under force vpt:2 off 1
        by_default 1
        number 1
        under force vpt:3 off $((turn % 2 * 2 + 1))
        by_default 3
        next_combination
    fi
    next_combination
    [ $whole = no ] || return
    case $((turn % 3)) in
        0) under force vpt:2 off 1 ;;
        1) by_default 1 ;;
        2) by_default 3 ;;
    esac
}

test_line() {
    what="$program $args"
    [ "$filter" = . ] || echo "$what" | grep -Eq -e "$filter" || return
    if ! [ -e "$build/$program" ]; then
        not_ok "$what: not built"
        return
    fi
    set +f
    rm -f "$tmp"/ref-*
    set -f
    if [ $every = no ]; then
        few
        return
    fi
    for n in $(echo "$ranks" | tr , ' '); do
        i=0
        while [ $i -lt $n_combinations ]; do
            combination $i
            i=$((i + 1))
        done
    done
}

trim() { # the words of a column
    # shellcheck disable=SC2086
    echo $1
}

echo "TAP version 13"
sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$list" >"$tmp/list"
while IFS='|' read -r program args ranks flags <&3; do
    program=$(trim "$program") args=$(trim "$args") ranks=$(trim "$ranks") flags=$(trim "$flags")
    test_line
done 3<"$tmp/list"
done_testing
