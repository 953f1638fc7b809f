#!/bin/sh
# The carpool command: exit statuses, output formats, and plans as text against the golden ones.
#
#   [UPDATE_GOLDEN=1] check_command.sh      with top_srcdir and top_builddir in the environment
#
# UPDATE_GOLDEN=1 writes golden/*.plan anew instead of comparing. Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
carpool=$top_builddir/cli/carpool
golden=$top_srcdir/tests/golden
[ -x "$carpool" ] || skip_all "no $carpool"
clean_environment

make_scratch

run() { # argument...; leaves $tmp/out, $tmp/err and $code
    "$carpool" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
}

# Runs the command and compares its exit status; all of stdout or stderr must contain the text.
expect() { # description, exit status, out | err, text, argument...
    what=$1 status=$2 stream=$3 text=$4
    shift 4
    run "$@"
    if [ "$code" -eq "$status" ] && grep -Fq -e "$text" "$tmp/$stream"; then
        ok "$what"
    else
        not_ok "$what"
        say "carpool $*: exit status $code instead of $status, or std$stream without \"$text\""
        say "$(cat "$tmp/out" "$tmp/err")"
    fi
}

# Failures have one line on stderr and nothing on stdout.
fails() { # description, text on stderr, argument...
    what=$1 text=$2
    shift 2
    expect "$what" 1 err "$text" "$@"
    check "$what: nothing on stdout, one line on stderr" \
        test ! -s "$tmp/out" -a "$(wc -l <"$tmp/err")" -eq 1
}

misused() { # description, text on stderr, argument...
    what=$1 text=$2
    shift 2
    expect "$what" 2 err "$text" "$@"
}

# --- the command itself
expect "--version" 0 out "carpool " --version
expect "--help" 0 out "usage: carpool COMMAND" --help
expect "help" 0 out "usage: carpool COMMAND" help
misused "no command" "usage: carpool COMMAND"
misused "unknown option" "no option '--versoin'" --versoin
misused "unknown command" "no command 'plam'; did you mean plan?" plam
run --help
for command in $(sed -n 's/^  \([a-z]*\)  *.*/\1/p' "$tmp/out"); do
    expect "$command --help" 0 out "usage: " "$command" --help
done

# --- carpool plan: usage
hub=$golden/hub-8.txt
misused "plan without a file" "which FILE?" plan
misused "plan: unknown option" "no option '--strategi'; did you mean --strategy?" plan --strategi=all "$hub"
misused "plan: unknown short option" "no option '-s'" plan -s "$hub"
misused "plan: option without its value" "option '--strategy' needs a value" plan "$hub" --strategy
misused "plan: option with a value it does not take" "option '--dump' takes no value" plan "$hub" --dump=all
misused "plan: unknown format" "--format takes table, tsv or json, not 'xml'" plan --format xml "$hub"
for number in 0 -1 1.5 x 99999999999 ''; do
    misused "plan: --ranks-per-node '$number'" "--ranks-per-node takes a whole number from 1 to 16777216, not '$number'" \
        plan --ranks-per-node "$number" "$hub"
done
for number in 0 -1 x nan 1e13; do
    misused "plan: --unit '$number'" "--unit takes a number of bytes above 0, up to 1e12, not '$number'" \
        plan --unit "$number" "$hub"
done
misused "plan: --budget" "--budget takes milliseconds above 0, up to 1e9, not '0'" plan --budget 0 "$hub"
misused "plan: unknown strategy" "no strategy 'magic'; there are direct, " \
    plan --strategy direct,magic "$hub"
misused "plan: strategy without its parameter" "as in vpt:2" plan --strategy vpt "$hub"
misused "plan: empty strategy" "no strategy ''" plan --strategy direct, "$hub"
fails "plan: strategy that does not fit" "8 ranks fit 1 to 3 dimensions, not 4" \
    plan --strategy vpt:4 "$hub"
fails "plan: grid that does not fit" "a grid of 4 points does not hold 8 ranks; grid:4x2 fits" \
    plan --strategy grid:2x2 "$hub"
misused "plan: no grid" "as in grid:8x64" plan --strategy grid "$hub"

# --- carpool plan: files that are no patterns
bad() { # name, what the message says after FILE:, contents
    printf '%b' "$3" >"$tmp/$1"
    fails "plan: $1" "$tmp/$1:$2" plan "$tmp/$1"
}
fails "plan: no such file" "no-such-file" plan "$tmp/no-such-file"
fails "plan: a directory" "$tmp" plan "$tmp"
bad "words.txt" "1: " 'hello\n'
bad "empty.txt" "" ''
bad "rank-out-of-range.txt" "3: " '4\n0 1 1\n0 4 1\n'
bad "negative-volume.txt" "2: " '4\n0 1 -1\n'
bad "two-numbers.txt" "2: " '4\n0 1\n'
bad "four-numbers.txt" "2: " '4\n0 1 1 1\n'
bad "no-ranks.txt" "1: " '0\n'
bad "rectangular.mtx" "2: " '%%MatrixMarket matrix coordinate integer general\n3 4 0\n'
bad "cut-off.mtx" "" '%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 2 1\n'
bad "complex.mtx" "1: " '%%MatrixMarket matrix coordinate complex general\n2 2 0\n'
bad "array.mtx" "1: " '%%MatrixMarket matrix array real general\n2 2\n'
bad "zero-based.mtx" "3: " '%%MatrixMarket matrix coordinate pattern general\n2 2 1\n0 1\n'

# --- carpool plan: output
expect "plan: table" 0 out "8 ranks, 14 messages" plan "$hub"
check "plan: the table fits 100 columns" test "$(sed 1d "$tmp/out" | awk '{ if (length > n) n = length } END { print n }')" -le 100
check "plan: its rows are in the order of their times" sh -c "sed -n '4,/^auto chose/p' '$tmp/out' | grep -v chose | awk '{ print \$(NF - 8) }' | sort -gc"
check "plan: the table has all strategies" test "$(grep -Ec ' [0-9.]+$' "$tmp/out")" -ge 14
cp "$tmp/out" "$tmp/table"
expect "plan: --wide" 0 out "barriers" plan --wide "$hub"
check "plan: --wide is wider" test "$(wc -c <"$tmp/out")" -gt "$(wc -c <"$tmp/table")"
expect "plan: two files" 0 out "15 ranks, 72 messages" plan --strategy direct "$hub" "$golden/mixed-15.txt"
check "plan: two files: the first, too" grep -q "8 ranks, 14 messages" "$tmp/out"
none "plan: nothing was changed, nothing is told" "$(cat "$tmp/err")"
printf '3\n0 0 5\n0 1 2\n0 1 3\n1 1 2\n' | "$carpool" plan --strategy direct - >"$tmp/out" 2>"$tmp/err"
check "plan: standard input" test $? -eq 0
check "plan: standard input: its name" grep -q '^standard input: 3 ranks, 1 messages' "$tmp/out"
check "plan: messages to oneself are told of" grep -q 'messages of ranks to themselves, left out: 2$' "$tmp/err"
check "plan: repeated lines are told of" grep -q 'lines that repeat a pair of ranks, added up: 1$' "$tmp/err"
printf '4\n0 1 2\n0 2 600\n0 3 513\n1 0 512\n' >"$tmp/sizes.txt"
expect "plan: messages above the size limit are left out" 0 out "4 ranks, 2 messages" plan --strategy direct "$tmp/sizes.txt"
check "plan: and told of" grep -q 'messages above 4096 bytes, which go straight, left out: 2 (--size-limit)$' "$tmp/err"
expect "plan: --size-limit none" 0 out "4 ranks, 4 messages" plan --size-limit none --strategy direct "$tmp/sizes.txt"
expect "plan: --size-limit" 0 out "4 ranks, 3 messages" plan --size-limit 4104 --strategy direct "$tmp/sizes.txt"
expect "plan: all above the limit" 0 out "4 ranks, 0 messages" plan --size-limit 1 --strategy all "$tmp/sizes.txt"
printf '3\n0 1 : 1 2 3\n0 2 : 3\n' >"$tmp/items.txt"
expect "plan: the limit counts all parts of a message" 0 out "3 ranks, 1 messages" plan --size-limit 16 --strategy direct "$tmp/items.txt"
printf '3\n0 1 2\n' | gzip -c | "$carpool" plan --strategy direct --dump - >"$tmp/out" 2>"$tmp/err"
if grep -q "without zlib" "$tmp/err"; then
    skip "plan: gzipped standard input" "built without zlib"
else
    check "plan: gzipped standard input" grep -q '^1 0 -> 1' "$tmp/out"
fi
printf '3\n0 9 2\n' | "$carpool" plan - >"$tmp/out" 2>"$tmp/err"
check "plan: a wrong line of standard input" sh -c "test $? -eq 1 && grep -q 'stdin:2: ' '$tmp/err'"
: >"$tmp/empty.machine"
expect "plan: a machine file without costs is told of" 0 err "empty.machine: has no costs; those of edr hold" \
    plan --machine "$tmp/empty.machine" --strategy direct "$hub"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    script -qec "'$carpool' plan --strategy direct,vpt:2 '$hub'" /dev/null >"$tmp/out" 2>&1 </dev/null
    check "plan: progress on a terminal" grep -q 'carpool plan: 2 of 2, vpt:2 ...' "$tmp/out"
else
    skip "plan: progress on a terminal" "no script, or no terminals"
fi
expect "plan: lower bounds" 0 out "in two waves some rank sends or receives 3" plan "$hub"
check "plan: how far auto is from the bound" grep -Eq '^no plan takes less than [0-9.]+ us \(modelled\), auto [1-9][0-9.]* times as long$' \
    "$tmp/out"
expect "plan: without auto the fastest is told" 0 out "(modelled), direct by lanes 1.00 times as long" \
    plan --strategy direct --unit 1000 --size-limit none "$hub"
run plan --format tsv "$hub"
printf '%s\t' strategy waves sends_max sends_avg recvs_max recvs_avg hops_max hops_avg \
    volume_factor modelled_us plan_ms set_max set_avg lanes_avg mpi_max cpu_ms bound_us | sed 's/\t$//' >"$tmp/header"
check "plan: tsv columns" test "$(sed 1q "$tmp/out")" = "$(cat "$tmp/header")"
strategies=$(sed 1d "$tmp/out" | cut -f 1 | paste -s -d ' ' -)
n_strategies=$(sed 1d "$tmp/out" | wc -l)
check "plan: a tsv line for each strategy" \
    test "${strategies#direct direct by lanes share:1 share vpt:2 vpt:3 vpt:2+klr }" != "$strategies"
check "plan: auto comes last" test "${strategies% auto}" != "$strategies"
none "plan: every tsv line has all columns" "$(awk -F '\t' 'NF != 17' "$tmp/out")"
none "plan: no tsv line is below the bound" "$(awk -F '\t' 'NR > 1 && !($17 > 0 && $10 >= $17)' "$tmp/out")"
none "plan: tsv holds numbers only" \
    "$(sed 1d "$tmp/out" | cut -f 2- | grep -Ev '^[0-9.]+(	[0-9.]+)*$')"
run plan --format tsv --strategy direct --ranks-per-node 4 "$hub"
figures='1\t7\t1.7500\t7\t1.7500\t1\t1.0000\t1.0000\t7\t1.7500'
check "plan: figures of the direct plan, by MPI and by lanes" \
    test "$(sed 1d "$tmp/out" | cut -f 1-9,12-15)" = \
    "$(printf "direct\t$figures\t0.0000\t7\ndirect by lanes\t$figures\t0.7500\t4")"
check "plan: lanes take less time" \
    awk -F '\t' 'NR == 2 { mpi = $10 } NR == 3 { less = $10 < mpi } END { exit !less }' "$tmp/out"
direct=$(sed -n 2p "$tmp/out" | cut -f 1-10,12-15)
run plan --format tsv --strategy direct --ranks-per-node 4 --no-lanes "$hub"
check "plan: --no-lanes: MPI's direct plan alone" \
    test "$(sed 1d "$tmp/out" | cut -f 1-10,12-15)" = "$direct"
run plan --format tsv --strategy direct --ranks-per-node 1 "$hub"
check "plan: no lanes between ranks on nodes of their own" \
    test "$(sed 1d "$tmp/out" | cut -f 1,14,15)" = "$(printf 'direct\t0.0000\t7')"
printf '%s\n' 'ranks_per_node 64' 'socket.lane.send_us 9' 'socket.lane.recv_us 9' >"$tmp/slow-lanes.machine"
run plan --format tsv --strategy direct,auto --machine "$tmp/slow-lanes.machine" "$hub"
check "plan: where lanes are slow, auto is what MPI does" \
    awk -F '\t' '{ us[$1] = $10 } END { exit !(us["auto"] == us["direct"] && us["direct"] < us["direct by lanes"]) }' "$tmp/out"
run plan --format tsv --strategy vpt:3,direct "$hub"
check "plan: strategies in the order asked for" \
    test "$(cut -f 1 "$tmp/out" | paste -s -d ' ' -)" = "strategy vpt:3 direct direct by lanes"
expect "plan: a dump tells what goes by lanes" 0 out "# edges by lanes: 14 of 14" \
    plan --dump --strategy direct "$hub"

json_is_valid() { # file; 77 when nothing is there to tell
    if command -v python3 >/dev/null 2>&1 && python3 -c '' 2>/dev/null; then
        python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
s = j["strategies"]
sys.exit(0 if j["ranks"] == 8 and len(s) == int(sys.argv[2]) and all(
    x["waves_us"] > 0 and x["modelled_us"] >= j["bound_us"] > 0 for x in s)
    and j["bound_two_waves"] == 3 else 1)' "$1" "$n_strategies"
    elif command -v node >/dev/null 2>&1; then
        node -e 'const j = JSON.parse(require("fs").readFileSync(process.argv[1]));
process.exit(j.ranks === 8 && j.strategies.length === Number(process.argv[2]) &&
    j.bound_two_waves === 3 &&
    j.strategies.every(s => s.waves_us > 0 && s.modelled_us >= j.bound_us) ? 0 : 1)' "$1" "$n_strategies"
    else
        return 77
    fi
}
run plan --format json "$hub"
json_is_valid "$tmp/out"
case $? in
    0) ok "plan: json" ;;
    77) skip "plan: json" "neither python3 nor node" ;;
    *) not_ok "plan: json" ;;
esac
if [ -w /dev/full ]; then
    "$carpool" plan "$hub" >/dev/full 2>"$tmp/err"
    check "plan: a full disk is an error" test $? -eq 1 -a -s "$tmp/err"
else
    skip "plan: a full disk is an error" "no /dev/full"
fi

# --- carpool plan: machines
printf 'ranks_per_node 2 # small\nnetwork.latency_us 100\n' >"$tmp/good.machine"
printf 'ranks_per_node 2\nnetwork.latency 100\n' >"$tmp/key.machine"
printf 'network.latency_us fast\n' >"$tmp/value.machine"
expect "plan: --machine" 0 out "8 ranks, 14 messages (1.75 a rank), 4 nodes" \
    plan --machine "$tmp/good.machine" "$hub"
expect "plan: --ranks-per-node wins over the machine file" 0 out ", 8 nodes" \
    plan --machine "$tmp/good.machine" --ranks-per-node 1 "$hub"
fails "plan: --machine with an unknown key" "$tmp/key.machine:2: unknown key" \
    plan --machine "$tmp/key.machine" "$hub"
fails "plan: --machine with a wrong value" "$tmp/value.machine:1: " \
    plan --machine "$tmp/value.machine" "$hub"
fails "plan: --machine that is neither file nor name" \
    "$tmp/none: no such file, and no such machine; built-in ones are edr, torus, node" \
    plan --machine "$tmp/none" "$hub"
expect "plan: --machine node: all ranks on one" 0 out ", 1 node," plan --machine node "$hub"
expect "plan: --machine node, but on two" 0 out ", 2 nodes" \
    plan --machine node --ranks-per-node 4 "$hub"
time_of() { # machine; the modelled time of the direct plan, rank by rank a node
    run plan --format tsv --strategy direct --ranks-per-node 1 --machine "$1" "$hub"
    sed 1d "$tmp/out" | cut -f 10
}
run plan --format tsv --strategy direct --ranks-per-node 1 "$hub"
usual=$(sed 1d "$tmp/out" | cut -f 10)
check "plan: --machine edr is the default" test "$(time_of edr)" = "$usual"
check "plan: --machine torus is another" test "$(time_of torus)" != "$usual"
expect "plan: --topology gives the ranks of a node" 0 out ", 2 nodes" \
    plan --topology "pack:2 core:2 pu:1" "$hub"
expect "plan: --ranks-per-node wins over --topology" 0 out ", 1 node," \
    plan --topology "pack:2 core:2 pu:1" --ranks-per-node 8 "$hub"
fails "plan: --topology that is neither file nor description" "no-topology" \
    plan --topology no-topology "$hub"
printf '9000\n0 1 1\n5 8999 2\n' >"$tmp/many.txt"
expect "plan: all strategies that take so many ranks" 0 out "auto chose" plan --strategy all "$tmp/many.txt"
run plan --format tsv --strategy direct "$hub"
cut -f 10 "$tmp/out" >"$tmp/8 bytes"
run plan --format tsv --strategy direct --unit 1000 "$hub"
check "plan: larger units take longer" \
    sh -c "! cut -f 10 '$tmp/out' | cmp -s - '$tmp/8 bytes'"

# --- plans as text
golden_plan() { # pattern, strategy, option...
    plan=$golden/$1.$(echo "$2" | tr : -).plan
    pattern=$1 strategy=$2
    shift 2
    run plan --dump --no-lanes --strategy "$strategy" "$@" "$golden/$pattern.txt"
    if [ -n "${UPDATE_GOLDEN:-}" ]; then
        cp "$tmp/out" "$plan"
    fi
    if [ "$code" -eq 0 ] && cmp -s "$tmp/out" "$plan"; then
        ok "plan of $pattern by $strategy"
    else
        not_ok "plan of $pattern by $strategy"
        say "$(diff "$plan" "$tmp/out" 2>&1)"
    fi
}
# What the first line of a pattern asks for, the last one being `*`: the examples of every strategy.
golden_strategies() { # pattern file
    plans=$(sed -n '1s/^# plans: //p' "$1")
    printf '%s\n' "${plans%\*}"
    [ "$plans" = "${plans%\*}" ] || strategies_to_test "$carpool"
}
for file in "$golden"/*.txt; do
    options=$(sed -n '2s/^# options: //p' "$file")
    for name in $(golden_strategies "$file"); do
        # shellcheck disable=SC2086
        golden_plan "$(basename "$file" .txt)" "$name" $options
    done
done

# --- the same pattern in other files
grep -v '^#' "$hub" | sed 1d | awk '
    { line[NR] = ($1 + 1) " " ($2 + 1) " " $3 }
    END {
        print "%%MatrixMarket matrix coordinate integer general\n8 8 " NR
        for (k = NR; k > 0; k--) print line[k]
    }' >"$tmp/hub.mtx"
grep -v '^#' "$hub" | sed 's/$/\r/' >"$tmp/hub.txt"
run plan --dump "$hub"
cp "$tmp/out" "$tmp/expected"
for file in hub.mtx hub.txt hub.mtx.gz hub.txt.gz; do
    case $file in
        *.gz) gzip -c "$tmp/${file%.gz}" >"$tmp/$file" ;;
    esac
    run plan --dump "$tmp/$file"
    if grep -q "without zlib" "$tmp/err"; then
        skip "plan: the same from $file" "built without zlib"
    else
        check "plan: the same from $file" cmp "$tmp/expected" "$tmp/out"
    fi
done

# --- carpool plan: damaged files, the same ones in every run; whatever they hold, the exit status is
# 0 or 1, and 1 comes with one line that says why
cat >"$tmp/mutate.awk" <<'EOF'
# Changes `changes` characters of the file: another one, one more, one less.
function draw(n) {
    state = (state * 1103515245 + 12345) % 2147483648
    return int(state / 65536) % n
}
BEGIN { state = seed * 7919 + 1 }
{ text = text $0 "\n" }
END {
    few = "0123456789 .-#%:e\n<>\"()x"
    for (k = 0; k < changes; k++) {
        at = 1 + draw(length(text))
        new = draw(4) ? substr(few, 1 + draw(length(few)), 1) : ""
        text = substr(text, 1, at - 1) new substr(text, at + draw(3))
    }
    printf "%s", text
}
EOF
grep -v '^#' "$golden/mixed-15.txt" >"$tmp/whole.txt"
grep -v '^#' "$golden/mixed-15.txt" | awk '
    NR == 1 { print "%%MatrixMarket matrix coordinate integer general"; ranks = $1; next }
    { line[NR] = ($1 + 1) " " ($2 + 1) " " $3 }
    END { print ranks, ranks, NR - 1; for (k = 2; k <= NR; k++) print line[k] }' >"$tmp/whole.mtx"
printf '%s\n' 'ranks_per_node 4 # small' 'network.latency_us 1.5' 'network.send_us 0.3' \
    'socket.ns_per_byte 0.1' 'network.node_ns_per_byte 0.04' 'segment_ns 20' \
    'node.lane.latency_us 0.2' 'switch_us 1e0' >"$tmp/whole.machine"
printf 'pack:2 numa:1 core:3 pu:2\n' >"$tmp/whole.topology"
damaged() { # file of $tmp, number of runs, argument...; the damaged file's name comes last
    what=$1 n=$2 seed=0 n_read=0 wrong=
    shift 2
    while [ "$seed" -lt "$n" ]; do
        seed=$((seed + 1))
        awk -v seed="$seed" -v changes=$((seed % 5 + 1)) -f "$tmp/mutate.awk" "$tmp/$what" \
            >"$tmp/damaged"
        case $what in
            *.topology) run "$@" "$(cat "$tmp/damaged")" ;;
            *) run "$@" "$tmp/damaged" ;;
        esac
        [ "$code" -eq 0 ] && n_read=$((n_read + 1)) && continue
        [ "$code" -eq 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && continue
        wrong="$wrong $seed"
    done
    none "plan: $n damaged ${what#whole.} files" "$wrong"
    check "plan: some damaged ${what#whole.} files can be read, some cannot" \
        test "$n_read" -gt 0 -a "$n_read" -lt "$n"
}
damaged whole.txt 60 plan --format tsv --budget 0.01 --ranks-per-node 4
damaged whole.mtx 60 plan --format tsv --budget 0.01 --ranks-per-node 4
damaged whole.machine 60 plan --format tsv --budget 0.01 "$hub" --machine
damaged whole.topology 60 plan --format tsv --budget 0.01 "$hub" --topology

# --- carpool run
misused "run without a program" "usage: " run
misused "run: option without a value" "'--mode' needs a value" run --mode true
misused "run: unknown option" "no option '--magic'" run --magic=1 true
misused "run: mistyped option" "no option '--stratgy'; did you mean --strategy?" run --stratgy=vpt:2 true
misused "run: mistyped --profile" "no option '--profil'; did you mean --profile?" run --profil true
misused "run: short option" "no option '-m'" run -m off true
misused "run: value that cannot be used" "CARPOOL_MODE='fast' cannot be used: it takes off|" \
    run --mode=fast true
misused "run: --profile without its directory" "names no directory" run --profile= true
misused "run: options, but no program" "which PROGRAM?" run --mode=off --
library=$top_builddir/shim/.libs/libcarpool.so
if [ -r "$library" ]; then
    # beside the command, where it looks first; another copy of the command for it
    mkdir -p "$tmp/bin"
    binary=$top_builddir/cli/.libs/carpool
    [ -x "$binary" ] || binary=$carpool
    cp "$binary" "$tmp/bin/carpool"
    cp "$library" "$tmp/bin/libcarpool.so"
    carpool=$tmp/bin/carpool
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "$LD_PRELOAD|$CARPOOL_MODE|$CARPOOL_RANKS_PER_NODE|$*"\n' >"$tmp/show"
    chmod +x "$tmp/show"
    expect "run: preloads the library, sets the settings" 0 out \
        "$tmp/bin/libcarpool.so|force|8|a --b" run --mode=force --ranks-per-node=8 "$tmp/show" a --b
    expect "run: -- ends the options" 0 out "libcarpool.so||" run -- "$tmp/show"
    expect "run: --profile" 0 out "libcarpool.so|profile||" run --profile "$tmp/show"
    LD_PRELOAD=$tmp/bin/libcarpool.so
    export LD_PRELOAD
    expect "run: what was preloaded stays" 0 out "$tmp/bin/libcarpool.so:$LD_PRELOAD||" run "$tmp/show"
    unset LD_PRELOAD
    printf '#!/bin/sh\nexit 41\n' >"$tmp/fail"
    printf '#!/bin/sh\nkill -9 $$\n' >"$tmp/killed"
    chmod +x "$tmp/fail" "$tmp/killed"
    run run "$tmp/fail"
    check "run: the program's exit status" test "$code" -eq 41
    run run "$tmp/killed"
    check "run: a program that was killed" test "$code" -eq 137
    expect "run: no such program" 127 err "cannot start $tmp/none: No such file" run "$tmp/none"
    expect "run: no such program in PATH" 127 err "called ./NAME" run no-such-program
    printf 'no program\n' >"$tmp/plain"
    expect "run: a file that cannot be executed" 126 err "cannot start $tmp/plain: Permission denied" \
        run "$tmp/plain"
    expect "run: a directory" 126 err "cannot start $tmp" run "$tmp"
    printf 'int main(void) { return 0; }\n' >"$tmp/static.c"
    if ${CC:-cc} -static -o "$tmp/static" "$tmp/static.c" 2>/dev/null; then
        expect "run: a static program" 126 err "$tmp/static is statically linked" run "$tmp/static"
    else
        skip "run: a static program" "cannot be linked here"
    fi
    if ${CC:-cc} -shared -Wl,-soname,libmpi.so.40 -o "$tmp/libmpi.so.40" "$tmp/static.c" 2>/dev/null &&
        ${CC:-cc} -Wl,--no-as-needed,-rpath,"$tmp" -o "$tmp/foreign" "$tmp/static.c" "$tmp/libmpi.so.40" 2>/dev/null; then
        run run "$tmp/foreign"
        check "run: a program of another MPI runs" test "$code" -eq 0
        expect "try: a program of another MPI" 1 err "linked with another MPI (libmpi.so.40)" \
            try -n 1 "$tmp/foreign"
    else
        skip "run: a program of another MPI" "cannot be linked here"
    fi
    carpool=$top_builddir/cli/carpool
else
    skip "run: preloads the library" "no $library"
fi

# --- carpool report
misused "report without a file" "which FILE?" report
misused "report with its file taken for the page" "which FILE?" report --html a
misused "report of two files" "'b' is too much" report a b
misused "report: unknown option" "no option '--htlm'; did you mean --html?" report --htlm a b
mkdir "$tmp/ride"
fails "report: a directory" "$tmp/ride/report.json" report "$tmp/ride"
: >"$tmp/nothing.json"
fails "report: an empty file" "is empty" report "$tmp/nothing.json"
printf '\177ELF\0\377' >"$tmp/binary.json"
fails "report: a binary file" "is this a report of Carpool's?" report "$tmp/binary.json"
fails "report: no such file" "$tmp/none" report "$tmp/none"
printf '{"a": 1,\n oops}\n' >"$tmp/bad.json"
fails "report: no JSON" "$tmp/bad.json:2: " report "$tmp/bad.json"
printf '{"a": 1}\n' >"$tmp/other.json"
fails "report: JSON of something else" "no report of Carpool's" report "$tmp/other.json"
printf '[]\n' >"$tmp/array.json"
fails "report: a JSON array" "no report of Carpool's" report "$tmp/array.json"
printf '{"patterns": []}\n' >"$tmp/empty.json"
expect "report: nothing was called" 0 out "no exchanges were seen" report "$tmp/empty.json"
printf '{"patterns": [{}, 5, {"direct": 3}], "version": 7}\n' >"$tmp/strange.json"
expect "report: strange values" 0 out "Carpool ?" report "$tmp/strange.json"

# --- the tables
expect "settings" 0 out "CARPOOL_MODE=auto" settings
CARPOOL_MODE=force
export CARPOOL_MODE
expect "settings: present values" 0 out "CARPOOL_MODE=force" settings
CARPOOL_MODE=fast
expect "settings: wrong values" 0 err "CARPOOL_MODE='fast' cannot be used" settings
unset CARPOOL_MODE
misused "settings takes no arguments" "takes no arguments, not 'x'" settings x
expect "strategies" 0 out "vpt:DIMENSIONS" strategies
expect "strategies: auto too" 0 out "auto" strategies
expect "strategies: examples" 0 out "for example vpt:2, vpt:3" strategies
misused "strategies takes no arguments" "takes no arguments, not 'x'" strategies x

# --- map
mkdir "$tmp/run"
printf '%s\n' '%%MatrixMarket matrix coordinate integer general' '4 4 4' '1 3 100' '3 1 100' '2 4 100' \
    '4 2 100' >"$tmp/run/pattern-00000000000000aa.mtx"
report() { # nodes, members of the pattern
    printf '{"version": "9", "ranks": 4, "nodes": [%s], "patterns": [{"kind": "Neighbor_alltoall", ' "$1"
    printf '"ranks": 4, "calls": 10, "pattern": "00000000000000aa"%s}]}\n' "$2"
}
two='{"host": "a", "ranks": "0-1"}, {"host": "b", "ranks": "2,3"}'
report "$two" ', "world": true' >"$tmp/run/report.json"
expect "map: hydra keeps node blocks" 0 err "the ranks stay where they are" map "$tmp/run/report.json"
check "map: hydra: the ranks' own places" test "$(tr '\n' ' ' <"$tmp/out")" = "a:2 b:2 "
check "map: what other places would gain" grep -q "it would be 65.8% less" "$tmp/err"
expect "map: gain" 0 err "65.8% less" map --scatter "$tmp/run/report.json"
check "map: hydra, scattered" test "$(tr '\n' ' ' <"$tmp/out")" = "b:1 a:1 b:1 a:1 "
check "map: hosts that come again are warned about" grep -q "see 4 nodes" "$tmp/err"
expect "map: a gain below the least" 0 err "gains 70% of the modelled time" map --scatter --min-gain 70 "$tmp/run/report.json"
check "map: a gain below the least: the ranks' own places" test "$(tr '\n' ' ' <"$tmp/out")" = "a:2 b:2 "
misused "map: a gain that is none" "--min-gain takes a number from 0 to 100, not 'x'" map --min-gain x "$tmp/run/report.json"
expect "map: a host that is named twice" 0 err "--hosts names x again: it is taken as one node" \
    map "$tmp/run/report.json" --hosts x:1,y:2,x:1 --format slurm
check "map: a host that is named twice: its places" test "$(sort "$tmp/out" | uniq -c | tr -d '\n ')" = 2x2y
report '{"host": "a", "ranks": "0,3"}, {"host": "b", "ranks": "1,2"}' ', "world": true' >"$tmp/run/report.json"
sed 's/^1 3/1 2/; s/^3 1/2 1/; s/^2 4/3 4/; s/^4 2/4 3/' "$tmp/run/pattern-00000000000000aa.mtx" >"$tmp/aa" &&
    cp "$tmp/run/pattern-00000000000000aa.mtx" "$tmp/bb" && cp "$tmp/aa" "$tmp/run/pattern-00000000000000aa.mtx"
expect "map: node blocks where those gain" 0 err "65.8% less" map "$tmp/run/report.json"
check "map: node blocks" test "$(sort "$tmp/out" | tr '\n' ' ')" = "a:2 b:2 "
cp "$tmp/bb" "$tmp/run/pattern-00000000000000aa.mtx"
report "$two" ', "world": true' >"$tmp/run/report.json"
expect "map: slurm" 0 err "SLURM_HOSTFILE=FILE srun -n 4" map "$tmp/run/report.json" --format slurm
check "map: a host for each rank" test "$(tr '\n' ' ' <"$tmp/out")" = "b a b a "
run map "$tmp/run/report.json" --hosts x:3,y:9 -o "$tmp/hosts"
check "map: nodes that are named" test "$code" -eq 0 -a "$(tr '\n' ' ' <"$tmp/hosts")" = "x:3 y:1 "
check "map: nothing to gain" grep -q "the ranks stay where they are" "$tmp/err"
fails "map: too few places" "has places for 3 ranks, and there are 4" \
    map "$tmp/run/report.json" --hosts x:1,y:2
fails "map: hosts that are none" "not 'y'" map "$tmp/run/report.json" --hosts x:1,y
fails "map: machine that is none" "no-machine" map "$tmp/run/report.json" --machine no-machine
fails "map: no such file" "$tmp/none" map "$tmp/none"
misused "map: unknown format" "takes hydra or slurm, not 'pbs'" map "$tmp/run/report.json" --format pbs
misused "map: no report" "which FILE?" map
report "$two" '' >"$tmp/run/report.json"
fails "map: no exchange of all ranks" "has no exchange of all ranks" map "$tmp/run/report.json"
report '{"host": "a", "ranks": "0-2"}' ', "world": true' >"$tmp/run/report.json"
fails "map: a rank without a node" "on which nodes the ranks ran" map "$tmp/run/report.json"
report '{"host": "a", "ranks": "0-1"}, {"host": "a", "ranks": "2-3"}' '' >"$tmp/run/report.json"
fails "map: two nodes of one name" "name the nodes by --hosts" map "$tmp/run/report.json"
report "$two" ', "world": true' >"$tmp/run/report.json"
rm "$tmp/run/pattern-00000000000000aa.mtx"
fails "map: no pattern" "pattern-00000000000000aa.mtx" map "$tmp/run/report.json"

done_testing
