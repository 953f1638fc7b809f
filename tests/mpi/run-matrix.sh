#!/bin/sh
# Runs the MPI tests of `testlist` under every strategy and compares with runs without the library.
#
#   run-matrix.sh BUILDDIR LIBCARPOOL YIELDLIB [FILTER]
#
# BUILDDIR holds the programs, YIELDLIB is preloaded in all runs (waiting ranks give way). FILTER is
# an extended regular expression for "program arguments, N ranks". `*` means the examples that
# BUILDDIR/../../cli/carpool gives of every strategy, and auto; TEST_STRATEGIES (a comma list) replaces
# it, TEST_LIST the list of tests, TEST_TIMEOUT the seconds of a run, MPIEXEC the launcher,
# TEST_PRELOAD what is preloaded before all else. TEST_BROKEN_MPI: lines that MPI alone fails are left out.
# Writes TAP; exits with 1 when a test failed.
#
# Of the list that comes with it, without a FILTER, every fifth pair of a number of ranks and a
# strategy is run, another fifth of each line, at least one, and every eighth line with mode off; TEST_WHOLE=yes: all.
#
# A run passes when it exits with 0, prints what the reference printed, and nothing on stderr. Where
# a strategy cannot apply to so few ranks (or nodes: planning takes them to be of three ranks each), warnings of the library are allowed and no plan is
# demanded: such exchanges are left to MPI.
set -uf
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB [FILTER]" >&2; exit 2; }
build=$1 library=$2 yield=$3 filter=${4:-.}
list=${TEST_LIST:-$(dirname "$0")/testlist}
limit=${TEST_TIMEOUT:-60}
first=${TEST_PRELOAD:+$TEST_PRELOAD:}
mpiexec=${MPIEXEC:-mpiexec.hydra}
# shellcheck source=tests/tap.sh disable=SC1091
. "$(dirname "$0")/../tap.sh"
find_gently
all=${TEST_STRATEGIES:-$(strategies_to_test "$build/../../cli/carpool" | tr '\n' ' ')}
[ -n "$all" ] || exit 2
clean_environment
whole=${TEST_WHOLE:-no}
if [ "$filter" != . ] || [ -n "${TEST_LIST:-}" ]; then whole=yes; fi

tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
n_tests=0
n_failed=0
n_lines=0

diagnose() { # text files: their first lines as comments
    sed 5q "$@" 2>/dev/null | cut -c 1-200 | sed 's/^/#   /'
}

result() { # ok | not ok, description
    n_tests=$((n_tests + 1))
    [ "$1" = ok ] || n_failed=$((n_failed + 1))
    echo "$1 $n_tests - $2"
}

# Reads flags NAME:TEXT. A run starts few processes besides its ranks, as there are thousands of runs.
read_flags() {
    placed='' planning='' per_node=3 times='' counts='' reason=''
    for word in $flags; do
        case $word in
            allgather:*) placed=${word#*:} ;;
            planning:*) planning=${word#*:} ;;
            per_node:*) per_node=${word#*:} ;;
            times:*) times=${word#*:} ;;
            calls:*) counts=$(echo "${word#*:}" | tr , ' ') ;;
            left:*) reason=$(echo "${word#*:}" | tr _ ' ') ;;
        esac
    done
}

run() { # name of the output files, preload, settings...; the program is $program $args on $n ranks
    out=$tmp/$1 preload=$2
    shift 2
    : >"$tmp/report.json"
    [ -z "$planning" ] || set -- "$@" -genv CARPOOL_PLANNING "$planning"
    case $flags in *follows*) set -- "$@" -genv CARPOOL_ORDER on ;; esac
    case $flags in *pays*) set -- "$@" -genv CARPOOL_LEARN 0 -genv CARPOOL_COST 100 ;; esac
    [ -z "$placed" ] || set -- "$@" -genv CARPOOL_ALLGATHER "$placed"
    prefix=$gently
    case $flags in *auto*|*measured*|*slowed*|*tried*|*follows*|*pays*) prefix= ;; esac # times are compared
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" $prefix "$mpiexec" -n "$n" -genv LD_PRELOAD "$first$preload" "$@" \
        "$build/$program" $args >"$out.out" 2>"$out.err" </dev/null
    code=$?
}

does_not_fit() { # strategy: a topology of d dimensions needs 2^d ranks
    case $1 in
        vpt:*) [ "$n" -lt $((1 << ${1#vpt:})) ] ;;
        *) [ "$n" -lt 2 ] ;;
    esac
}

may_warn() { # strategy; some programs have communicators with fewer ranks than $n
    does_not_fit "$1" || { [ "$1" != "${1#vpt:}" ] && [ "$n" -lt $((2 << ${1#vpt:})) ]; }
}

unexpected_stderr() { # strategy; leaves the lines in $tmp/unexpected
    [ -s "$tmp/now.err" ] || return
    cp "$tmp/now.err" "$tmp/unexpected"
    if may_warn "$1"; then
        grep -v '^carpool\[[0-9]*\] warn' "$tmp/now.err" >"$tmp/unexpected"
    fi
    [ -s "$tmp/unexpected" ]
}

schema=$(dirname "$0")/../../doc/report.schema.json

holds_its_schema() { # prints what is wrong with the report, if there is one
    [ -s "$tmp/report.json" ] && [ -x "$build/../schema" ] || return 0
    "$build/../schema" "$schema" "$tmp/report.json"
}

was_planned() {
    grep -Eq '"calls_planned"[[:space:]]*:[[:space:]]*[1-9]' "$tmp/report.json" 2>/dev/null
}

# Calls were carried by a way, and none by another; "way" comes after "calls_planned".
was_carried_by() { # way
    awk -F '[:,]' -v expected="$1" '
        /"calls_planned"/ { n = $2 }
        /"way"/ { way = $2; gsub(/[" ]/, "", way) }
        /"way"/ && way == expected && n > 0 { found = 1 }
        /"way"/ && way != expected { wrong = 1 }
        END { exit !found || wrong }' "$tmp/report.json" 2>/dev/null
}

# A report has a pattern of kind "pt2pt" with planned calls; "kind" comes before "calls_planned".
was_rerouted() {
    awk -F '[:,]' '
        /"kind"/ { pt2pt = $2 ~ /"pt2pt"/ }
        /"calls_planned"/ && pt2pt && $2 + 0 > 0 { found = 1 }
        END { exit !found }' "$tmp/report.json" 2>/dev/null
}

# Messages of an exchange left in the order of what their receivers send in the next one.
was_ordered() {
    grep -q '"ordered": true' "$tmp/report.json" 2>/dev/null
}

# Messages rode in reductions.
was_embedded() {
    grep -q '"messages_carried": [1-9]' "$tmp/report.json" 2>/dev/null
}

# A plan had edges in lanes. That they could not be opened is told on stderr.
was_laned() {
    grep -Eq '"lanes_avg": (0*[1-9]|0\.0*[1-9])' "$tmp/report.json" 2>/dev/null
}

# Every exchange whose plannings are counted was planned so often.
were_planned() { # times
    awk -F '[:,]' -v times="$1" '
        /"times_planned"/ { found = 1; wrong = wrong || $2 + 0 != times }
        END { exit !found || wrong }' "$tmp/report.json" 2>/dev/null
}

# The report has so many calls of a kind, or of a kind and tag, in all its exchanges; "calls" follows
# "kind", "tag" follows "calls".
were_called() { # kind:calls or kind/tag:calls
    awk -F '[:,]' -v expected="$1" '
        /"kind"/ { kind = $2; gsub(/[" ]/, "", kind); first = 1 }
        /"calls"/ && first { calls = $2; n[kind] += calls; first = 0 }
        /"tag"/ && calls { n[kind "/" $2 + 0] += calls; calls = 0 }
        END { split(expected, e, ":"); exit n[e[1]] != e[2] }' "$tmp/report.json" 2>/dev/null
}

# The report says why messages were left to MPI.
was_left() { # text
    grep -q '"left_alone": ".*'"$1" "$tmp/report.json" 2>/dev/null
}

judge() { # description, strategy, whether calls must have been planned, whether messages rerouted
    why=
    [ "$code" -eq 0 ] || why=$(exit_text "$code" "$limit")
    cmp -s "$tmp/ref.out" "$tmp/now.out" || why="${why:+$why, }output differs"
    unexpected_stderr "$2" && why="${why:+$why, }stderr is not empty"
    if [ "$3" = yes ] && ! was_planned; then
        why="${why:+$why, }no call was planned"
    fi
    for way in $placed; do
        [ "$3" = no ] || was_carried_by "$way" ||
            why="${why:+$why, }not carried by the way $way alone"
    done
    if [ "$4" = yes ] && ! was_rerouted; then
        why="${why:+$why, }no point-to-point exchange was rerouted"
    fi
    case $flags in *embedded*)
        if [ "$3$4" != nono ] && ! was_embedded; then
            why="${why:+$why, }no message rode in a reduction"
        fi ;;
    esac
    case $flags in *mapped*)
        if [ "$3$4" != nono ] && ! grep -q '"mapped": true' "$tmp/report.json" 2>/dev/null; then
            why="${why:+$why, }no ranks were placed for reductions"
        fi ;;
    esac
    case $flags in *lanes*)
        if [ "$3$4" != nono ] && [ "$lanes" = auto ] && ! was_laned; then
            why="${why:+$why, }nothing went by lanes"
        fi
        if [ "$lanes" = off ] && was_laned; then
            why="${why:+$why, }CARPOOL_LANES=off has lanes"
        fi ;;
    esac
    case $flags in
        *follows*)
            [ "$2" = off ] || [ "$2" = auto ] || was_ordered ||
                why="${why:+$why, }no exchange was ordered by the next one" ;;
    esac
    case $flags in
        *joint*)
            [ "$2" = off ] || grep -q '"planned_together": true' "$tmp/report.json" 2>/dev/null ||
                why="${why:+$why, }no exchange was planned by all ranks together" ;;
    esac
    if [ -n "$times" ] && [ "$2" != off ] && ! were_planned "$times"; then
        why="${why:+$why, }an exchange was not planned that often: $times"
    fi
    for counted in $counts; do
        [ "$2" = off ] || were_called "$counted" ||
            why="${why:+$why, }not the number of calls that were made: $counted"
    done
    if [ -n "$reason" ] && [ "$2" != off ] && ! was_left "$reason"; then
        why="${why:+$why, }the report does not say that messages were left alone: $reason"
    fi
    if [ -n "$reason" ] && [ "$4" = no ] && was_rerouted; then
        why="${why:+$why, }a point-to-point exchange was rerouted"
    fi
    case $flags in
        *reordered*)
            [ "$2" = off ] || grep -q '"reordered": [1-9]' "$tmp/report.json" 2>/dev/null ||
                why="${why:+$why, }no ranks were placed anew" ;;
    esac
    broken=$(holds_its_schema)
    [ -z "$broken" ] || why="${why:+$why, }the report is not as doc/report.schema.json says: $broken"
    if [ -z "$why" ]; then
        result ok "$1"
        return
    fi
    result "not ok" "$1"
    echo "# $why"
    diff "$tmp/ref.out" "$tmp/now.out" | diagnose
    diagnose "$tmp/unexpected"
}

reference() {
    run ref "$yield"
    if [ $code -eq 0 ] && ! [ -s "$tmp/ref.err" ]; then
        result ok "$what, without the library"
        return
    fi
    if [ -n "${TEST_BROKEN_MPI:-}" ]; then
        result ok "$what # SKIP MPI alone: $(exit_text "$code" "$limit")"
        return 1
    fi
    result "not ok" "$what, without the library"
    echo "# $(exit_text "$code" "$limit")"
    grep FAIL "$tmp/ref.out" | diagnose
    diagnose "$tmp/ref.err"
    return 0
}

under_strategy() { # strategy
    if ! [ -e "$library" ]; then
        result ok "$what, $1 # SKIP no library"
        return
    fi
    mode=force
    case $flags in *auto*) mode=auto ;; esac
    reorder=off
    case $flags in *reordered*) reorder=auto ;; esac
    hold=500 # microseconds; longer where what ranks without a core do late would decide
    case $flags in *left:*) hold=200000 ;; *embedded*) hold=20000 ;; esac
    # Ranks that meet by appointment come too late while the machine does something else.
    for try in 1 2 3 4; do
        run now "$library:$yield" -genv CARPOOL_MODE $mode -genv CARPOOL_STRATEGY "$1" \
            -genv CARPOOL_HOLD $hold \
            -genv CARPOOL_RANKS_PER_NODE "$per_node" -genv CARPOOL_LANES "$lanes" \
            -genv CARPOOL_REORDER $reorder -genv CARPOOL_REPORT "$tmp/report.json"
        case $flags in *rerouted*|*planned*) ;; *) break ;; esac
        was_left 'no wait of all for a nonblocking one' || break
        [ "$try" = 4 ] || echo "# the ranks did not meet: run again"
    done
    [ -e "$tmp/ref.out" ] || cp "$tmp/now.out" "$tmp/ref.out"
    must_plan=no
    case $flags in *planned*) may_warn "$1" || must_plan=yes ;; esac
    must_reroute=no # two ranks have one destination each: nothing to combine
    case $flags in *rerouted*) may_warn "$1" || [ "$n" -lt 3 ] || must_reroute=yes ;; esac
    [ "$lanes" = auto ] && without= || without=", no lanes"
    judge "$what, $1$without" "$1" $must_plan $must_reroute
}

# Auto mode: what is tried, and that a plan slowed down by a delay is given up.
measured() { # description, why or "" from the report, settings...
    if ! [ -e "$library" ]; then
        result ok "$what, $1 # SKIP no library"
        return
    fi
    describe=$1 expect=$2
    shift 2
    run now "$library:$yield" -genv CARPOOL_MODE auto -genv CARPOOL_RANKS_PER_NODE 3 \
        -genv CARPOOL_REPORT "$tmp/report.json" "$@"
    judge "$what, $describe" auto no no
    if grep -q "$expect" "$tmp/report.json" 2>/dev/null; then
        result ok "$what, $describe: report"
    else
        result "not ok" "$what, $describe: report"
        echo "# nothing like $expect"
    fi
}

without_report() { # mode
    if ! [ -e "$library" ]; then
        result ok "$what, $1 # SKIP no library"
        return
    fi
    run now "$library:$yield" -genv CARPOOL_MODE "$1"
    judge "$what, $1" off no no
}

test_line() { # one line of the list with $n ranks
    what="$program $args, $n ranks"
    lanes=auto
    [ "$filter" = . ] || echo "$what" | grep -Eq -e "$filter" || return
    read_flags
    case $flags in
        *optional*)
            if ! [ -e "$build/$program" ]; then
                result ok "$what # SKIP not built"
                return
            fi ;;
    esac
    rm -f "$tmp/ref.out" "$tmp/ref.err" "$tmp/now.out" "$tmp/now.err"
    case $flags in
        *noref*)
            if [ -n "${TEST_BROKEN_MPI:-}" ]; then return; fi ;;
        *) reference || return ;;
    esac
    for strategy in $chosen; do
        lanes=auto
        under_strategy "$strategy"
        case $flags in *lanes*)
            lanes=off
            under_strategy "$strategy" ;;
        esac
    done
    if [ $whole = yes ] || [ $((n_lines % 8)) -eq 0 ]; then
        case $flags in *noref*) ;; *) [ "$n" != "$n_off" ] || without_report off ;; esac
    fi
    case $flags in *calls:*) without_report auto ;; esac
    case $flags in *measured*)
        measured measured '"trial_calls": [1-9]'
        measured "slow plan" 'no plan was measured faster than MPI' -genv CARPOOL_DELAY 5000
        ;;
    esac
    case $flags in *tried*) # with interfaces so slow that placing promises much
        echo 'network.node_ns_per_byte 5' >"$tmp/slow.txt"
        measured tried '"trial_calls": [1-9]' -genv CARPOOL_MACHINE "$tmp/slow.txt"
        # two islands of one node, which only distances show
        for figure in us ns; do
            awk -v n="$n" 'BEGIN {
                print "%%MatrixMarket matrix array real general"; print n, n
                for (k = 0; k < n * n; k++) print k % (n + 1) == 0 ? 0 : (k + int(k / n)) % 2 ? 9 : 0.1
            }' >"$tmp/$figure.mtx"
        done
        printf 'distances us.mtx\ndistances.ns_per_byte ns.mtx\n' >"$tmp/islands.txt"
        measured "tried by distances" '"trial_calls": [1-9]' -genv CARPOOL_MACHINE "$tmp/islands.txt" \
            -genv CARPOOL_RANKS_PER_NODE "$n" ;;
    esac
    case $flags in *slowed*)
        for link in socket node network; do
            printf '%s.send_us 50\n%s.recv_us 50\n' $link $link
        done >"$tmp/dear.txt" # so that the model is for the plan
        measured slowed 'the program was slower than before' -genv CARPOOL_DELAY 100000 -genv CARPOOL_HOLD 1000000 \
            -genv CARPOOL_STRATEGY vpt:2 -genv CARPOOL_MACHINE "$tmp/dear.txt"
        ;;
    esac
}

# Which of the line's strategies are run with the next number of ranks: $chosen.
choose() {
    chosen=
    for strategy in $(echo "$strategies" | tr , ' '); do
        every=$((n_pairs < 5 ? n_pairs : 5))
        if [ $whole = yes ] || [ $((pair % every)) -eq $((n_lines % every)) ]; then
            chosen="$chosen $strategy"
        fi
        pair=$((pair + 1))
    done
}

count() { # words
    n_words=$#
}

trim() { # the words of a column
    # shellcheck disable=SC2086
    echo $1
}

echo "TAP version 13"
sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$list" >"$tmp/list"
while IFS='|' read -r program ranks strategies args flags <&3; do
    program=$(trim "$program") ranks=$(trim "$ranks") strategies=$(trim "$strategies")
    args=$(trim "$args") flags=$(trim "$flags")
    [ "$strategies" != '*' ] || strategies=$all
    # shellcheck disable=SC2046
    count $(echo "$ranks" | tr , ' ') && n_pairs=$n_words
    # shellcheck disable=SC2046
    count $(echo "$strategies" | tr , ' ') && n_pairs=$((n_pairs * n_words))
    pair=0 n_off=
    if [ -z "$program" ] || [ $n_pairs -eq 0 ]; then # no line may pass because it says nothing
        n_tests=$((n_tests + 1)) n_failed=$((n_failed + 1))
        echo "not ok $n_tests - the line '$program' has no program, ranks and strategies"
    fi
    for n in $(echo "$ranks" | tr , ' '); do
        choose
        [ -n "$chosen" ] || continue
        n_off=${n_off:-$n}
        test_line
    done
    n_lines=$((n_lines + 1))
done 3<"$tmp/list"
echo "1..$n_tests"
[ $n_failed -eq 0 ]
