#!/bin/sh
# carpool report: the text and the page, from reports that are written here. In a real browser, where
# there is one (chromium), the page is looked at, too: no label may overlap another or be cut off.
#
#   check_report.sh      with top_srcdir and top_builddir in the environment
#
# The screenshot stays in the present directory as report.png. Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
carpool=$top_builddir/cli/carpool
[ -x "$carpool" ] || skip_all "no $carpool"
LC_ALL=C
export LC_ALL
make_scratch

# --- a report as of 6,400 ranks, with a name that must not be taken for HTML
awk 'BEGIN {
    n = 128
    for (i = 0; i < n; i++) {
        row = wide = ""
        for (j = 0; j < n; j++) {
            d = i > j ? i - j : j - i
            if (d < 40) wide = wide (wide ? " " : "") j ":" int(2500 / (1 + d * d))
            if (i % 8 == j % 8) row = row (row ? " " : "") j ":" 20
        }
        before = before (i ? "," : "") "\"" wide "\""
        after = after (i ? "," : "") "\"" row "\""
    }
    for (k = 0; k < 256; k++) {
        loads = loads (k ? "," : "") (k % 60 == 7 ? 490 : 60 + k % 9)
        few = few (k ? "," : "") (12 + k % 3)
    }
    figures = "\"sends_avg\": 62.5, \"lanes_avg\": 31.25, \"mpi_max\": 11, \"recvs_max\": 480, \"hops_max\": 3, \"volume_factor\": 2.12,"
    printf "{\"version\": \"9.9\", \"schema\": 4, \"run\": {\"program\": \"./a&b\", \"arguments\": [\"-x\", \"<1>\"],"
    printf "\"started\": \"2026-11-24T23:59:01Z\", \"mpi\": \"MPICH 4.0.2\", \"job\": \"Slurm 77\", \"machine\": \"edr\","
    printf "\"machine_builtin\": \"cluster\", \"cores\": 64, \"cores_shared\": true, \"yields\": false},"
    printf "\"nodes\": [{\"host\": \"n1\", \"ranks\": \"0-3199\"}, {\"host\": \"n2\", \"ranks\": \"3200-6399\"}],"
    printf "\"ranks\": 6400, \"mode\": \"auto\", \"seconds\": 812.4, \"left_out\": 3,\n"
    printf "\"settings\": {\"CARPOOL_MODE\": \"auto\"}, \"patterns\": [\n"
    printf "{\"kind\": \"pt2pt\", \"tag\": 77, \"ordinal\": 1, \"ranks\": 6400, \"communicators\": 1,"
    printf "\"calls\": 120000, \"calls_planned\": 119000, \"strategy\": \"vpt:3+klr\","
    printf "\"considered\": \"vpt:3+klr\", \"messages\": 400000, \"bytes\": 123456789,"
    printf "\"straight_messages\": 12, \"straight_bytes\": 99999, \"forwarded_bytes\": 123456789012,"
    printf "\"ordered\": true,"
    printf "\"plan_ms\": 512.3, \"times_planned\": 2, \"bytes_min\": 0, \"bytes_max\": 4096, \"file\": \"pattern-aa.mtx\","
    printf "\"times\": {\"calls_per_point\": 4096, \"points\": ["
    printf "{\"first_call\": 0, \"least_us\": 900, \"mean_us\": 5000, \"most_us\": 9e9, \"planned\": 0.9, \"trial\": true},"
    printf "{\"first_call\": 8192, \"least_us\": 90, \"mean_us\": 130, \"most_us\": 150, \"planned\": 1, \"trial\": false},"
    printf "{\"first_call\": 118784, \"least_us\": 95, \"mean_us\": 140.5, \"most_us\": 160, \"planned\": 1, \"trial\": false}]},"
    printf "\"sizes\": [[0, 100], [1, 5], [4095, 120000], [4096, 10]], \"ranked\": ["
    printf "{\"strategy\": \"vpt:3+klr\", \"modelled_us\": 81.2},"
    printf "{\"strategy\": \"grid:far:inverse-hourglass:4+klf\", \"modelled_us\": 95.5},"
    printf "{\"strategy\": \"direct\", \"modelled_us\": 431.9}], \"tried\": [{\"strategy\": \"vpt:2\", \"measured_us\": 171.3},"
    printf "{\"strategy\": \"grid:far:inverse-hourglass:4+klf\", \"measured_us\": 195.5},"
    printf "{\"strategy\": \"vpt:4\", \"measured_us\": null}], \"cell_ranks\": 50, \"bin_ranks\": 25, \"node_borders\": [3200, 99999],"
    printf "\"direct\": {\"sends_max\": 490, %s \"modelled_us\": 431.9, \"us_per_call\": 520.1,", figures
    printf "\"sends\": [%s], \"recvs\": [%s], \"cells\": [%s], \"cell_bytes\": [%s],", loads, loads, before, before
    printf "\"inside\": {\"messages\": 71, \"bytes\": 72}, \"between\": {\"messages\": 73, \"bytes\": 74}},\n"
    printf "\"planned\": {\"sends_max\": 14, %s \"modelled_us\": 81.2, \"us_per_call\": 133.7,", figures
    printf "\"sends\": [%s], \"recvs\": [%s], \"cells\": [%s], \"cell_bytes\": [%s],", few, few, after, after
    printf "\"inside\": {\"messages\": 75, \"bytes\": 76}, \"between\": {\"messages\": 77, \"bytes\": 78}}},\n"
    printf "{\"kind\": \"<script>alert(1)</script>\\\"&\", \"ranks\": 3, \"calls\": 2, \"calls_passed\": true, \"calls_planned\": 1, \"strategy\": \"none\", \"considered\": \"share\","
    printf "\"left_alone\": \"a & b < c\","
    printf "\"order\": {\"before\": {\"kind\": \"<i>\", \"tag\": 4, \"ordinal\": 0}, \"units\": {\"given\": 9}}},\n"
    printf "{\"kind\": \"Neighbor_alltoall\", \"pattern\": \"cc\", \"ranks\": 4, \"calls\": 7, \"calls_planned\": 0,"
    printf "\"left_alone\": \"no gain\", \"considered\": \"direct\", \"messages\": 2, \"bytes\": 16,"
    printf "\"cell_ranks\": 1, \"bin_ranks\": 1,"
    printf "\"direct\": {\"sends\": [1, 1, 0, 0], \"recvs\": [1, 1, 0, 0], \"modelled_us\": 1.5,"
    printf "\"us_per_call\": null, \"cells\": [\"1:1\", \"0:1\", \"\", \"\"]},"
    printf "\"planned\": {\"sends\": [1, 1, 0, 0], \"recvs\": [1, 1, 0, 0], \"modelled_us\": 1.5,"
    printf "\"us_per_call\": null, \"cells\": [\"1:1\", \"0:1\", \"\", \"\"]}},\n"
    printf "{\"kind\": \"pt2pt\", \"tag\": 3, \"ordinal\": 0, \"ranks\": 4, \"calls\": 60, \"calls_planned\": 0, \"strategy\": \"none\","
    printf "\"considered\": \"direct by lanes\", \"left_alone\": \"too dear\", \"messages\": 8, \"bytes\": 64,"
    printf "\"decision\": {\"mpi_us\": 0.75, \"most\": 0.9, \"plan_us\": 0.625, \"matching_us\": 2.5},"
    printf "\"windows\": {\"pairs\": 3, \"mpi_us\": 31.5, \"plan_us\": 33.25},"
    printf "\"direct\": {\"modelled_us\": 3.75, \"us_per_call\": null}, \"planned\": {\"modelled_us\": 0.625, \"us_per_call\": null}},\n"
    printf "{\"kind\": \"Alltoallv\", \"ranks\": 4, \"calls\": 3201, \"calls_planned\": 2132, \"strategy\": \"none\","
    printf "\"considered\": \"balance\", \"left_alone\": \"not faster\", \"forwarded_bytes\": 4096, \"messages\": 8, \"bytes\": 64, \"tried\": ["
    printf "{\"strategy\": \"direct\", \"measured_us\": 20.5}, {\"strategy\": \"vpt:2\", \"measured_us\": 21}, {\"strategy\": \"balance\", \"measured_us\": 24.25}],"
    printf "\"direct\": {\"modelled_us\": 3, \"us_per_call\": 39.36}, \"planned\": {\"modelled_us\": 2, \"hops_max\": 1, \"us_per_call\": 29.69}}]}\n"
}' >"$tmp/report.json"

has() { # description, fixed text
    check "page: $1" grep -Fq -e "$2" "$tmp/page.html"
}

lacks() { # description, extended regular expression
    none "page: $1" "$(grep -Eo -e "$2" "$tmp/page.html" | head -n 3)"
}

"$carpool" report "$tmp/report.json" >"$tmp/text" 2>&1
check "text: the exchange of many ranks" grep -Fq "pt2pt, tag 77, no. 2 on 6400 ranks, 120000 calls: carried by vpt:3+klr in 119000 of 120000 calls" \
    "$tmp/text"
check "text: calls that passed without a look, and what carried those that were later left to MPI" grep -Fq "on 3 ranks, 2 calls looked at (more passed without a look): carried by share in 1 of 2 calls; later left to MPI: a & b < c" "$tmp/text"
check "text: messages above the size limit" grep -Fq "12 messages of 99999 bytes" "$tmp/text"
check "text: how often it was planned" grep -Fq "plan: vpt:3+klr, made 2 times in 512.30 ms;" "$tmp/text"
check "text: orders of two exchanges, one by schema 4" \
    test "$(grep -c 'order: messages leave first to ranks that send most in what follows' "$tmp/text")" -eq 2
check "text: what is not in the report" grep -Fq "3 more exchanges" "$tmp/text"
check "text: lanes" grep -Eq "^ +by plan +133.70 +14 +62.50 +480 +31.25 +11 +3 " "$tmp/text"
says() { # description, extended regular expression
    check "text: $1" grep -Eq -e "$2" "$tmp/text"
}
says "what decided about messages" 'By the model the plan takes 0\.62 us, with forwarding, and matching its messages 2\.50: 3\.12 together\. This is not below 0\.68, which is 0\.9 of the 0\.75 that MPI takes'
says "what was measured of messages, by MPI" '^ +by MPI +31\.50 '
says "what was measured of messages, by the plan" '^ +by plan +33\.25 '
says "of what" 'measured from one collective to the next, all exchanges of the communicator together; means of 3 windows each'
says "the last trial decides, by MPI" '^ +by MPI +20\.50 '
says "the last trial decides, by the plan" '^ +by plan +24\.25 '
says "a plan without hops forwards nothing" '4096 bytes forwarded in all calls, by other plans that were tried$'
says "and all calls" 'last trial, which decides; over all calls by MPI 39\.36, by plan 29\.69$'
check "page: is written" "$carpool" report --html "$tmp/page.html" "$tmp/report.json"
check "page: the options may come last" "$carpool" report "$tmp/report.json" --html="$tmp/again.html"
check "page: the same report gives the same page" cmp "$tmp/page.html" "$tmp/again.html"
has "begins as HTML 5" "<!DOCTYPE html>"
has "has a language and an encoding" '<html lang="en">'
has "the program" "<p><code>./a&amp;b -x &lt;1&gt;</code></p>"
has "the run" "6400 ranks on 2 nodes (n1, n2), 64 cores, mode auto, started 2026-11-24T23:59:01Z, 812 s from MPI_Init to MPI_Finalize"
has "the versions" "Carpool 9.9 (report schema 4), MPICH 4.0.2"
has "more ranks than cores" "more ranks (6400) than cores (64)"
has "what to do about that" "carpool run --yield"
has "the machine of the model" "called edr (cluster), not of the one that ran this"
check "text: the run comes first" test "$(head -n 1 "$tmp/text")" = "./a&b -x <1>"
check "text: the pattern's command can be pasted" grep -Fq "carpool plan --unit 1 $tmp/pattern-aa.mtx" "$tmp/text"
has "a section of an exchange" '<h2 id="e1">1. pt2pt, tag 77, no. 2 on 6400 ranks</h2>'
has "the decision" "Carried by vpt:3+klr in 119000 of 120000 calls"
has "why it was left to MPI" "Left to MPI</b>: no gain. Best plan by the model: direct"
has "text is escaped" '&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;'
has "reasons are escaped" 'a &amp; b &lt; c'
has "the pattern before" "Before: messages, by MPI"
has "the pattern after" "After: messages, by vpt:3+klr"
has "bytes" "After: bytes, by vpt:3+klr"
has "the borders of nodes" "Broken lines are the borders of nodes."
has "messages inside nodes and between them" "<td class=\"n\">by plan</td><td>75</td><td>77</td><td>76</td><td>78</td>"
has "measured before modelled" "<th>measured &micro;s</th><th class=\"o\">most sent by a rank</th><th>modelled &micro;s</th>"
has "dark colours" "prefers-color-scheme:dark"
has "what a cell is" "A cell is 50 sending by 50 receiving ranks"
has "axes of ranks" "receiving rank"
has "an axis of messages" "messages sent in one exchange"
has "what a step is" "Each step is the busiest of 25 ranks"
has "times with their unit" "microseconds for one exchange (cost model)"
has "a measured trial" ">171.3</text>"
has "trials are marked" "trial: vpt:2</text>"
has "measured times" "microseconds a call (median of the slowest rank)"
has "a long name is cut off" "trial: grid:far:inverse-hourg...</text>"
has "sizes" "up to 4095 bytes"
has "lanes" 'of a rank on average</td><td>31.2<'
has "messages by MPI" 'messages by MPI of the busiest rank</td><td>11<'
has "how often it was planned" '>times it was planned, within that time</td><td>2<'
has "what decided about messages" "matching its messages 2.50: 3.12 together."
has "what was measured of messages" "<td>31.5 &rarr; 33.2</td>"
has "of what" "; measured from one collective to the next, all exchanges"
has "a plan without hops forwards nothing" "all calls, by other plans that were tried</td><td>4096<"
has "the figures that decided" "<td>20.5 &rarr; 24.2</td>"
has "what a strategy is" "<li><b>vpt</b>: store-and-forward on a virtual process topology"
has "what balance is" "<li><b>balance</b>: searches within the budget"
has "what lanes are" "<li><b>by lanes</b>: through memory that the ranks of a node share"
has "what a map is" "<li><b>+klr</b>: ranks next to each other in the grid"
has "what a tag is" "<li><b>tag</b>: the tag of the exchange&#39;s first message"
has "what a number is" "<li><b>no.</b>: its number among"
lacks "words that are not used" "<b>(node|\\+near|ring|packed)</b>"
check "page: orders of two exchanges" test "$(grep -c 'Messages leave first to the ranks' "$tmp/page.html")" -eq 2
has "the settings" "CARPOOL_MODE"
has "an exchange that was not timed" "Calls of this exchange were not timed."
lacks "no scripts" '<script'
lacks "nothing from elsewhere" '(https?:|src=|url\(|@import|<link|<iframe)'
lacks "no numbers that are none" '(nan|inf)[ ,"vVhHz]'
check "page: it stays small" test "$(wc -c <"$tmp/page.html")" -lt 400000
count() { grep -o -e "$1" "$tmp/page.html" | wc -l; }
check "page: pictures of messages and bytes" test "$(count 'sending rank</text>')" -eq 6
check "page: lines at the borders of nodes" test "$(count 'class="nb"')" -eq 4
check "page: messages sent and received of each" test "$(count '>direct (MPI alone)</text>')" -eq 4
check "page: tags are closed" test "$(count '<svg ')" -eq "$(count '</svg>')" -a \
    "$(count '<table>')" -eq "$(count '</table>')" -a "$(count '<tr')" -eq "$(count '</tr>')"

# --- pages that cannot be written, reports that are strange
"$carpool" report --html "$tmp/none/page.html" "$tmp/report.json" >"$tmp/out" 2>&1
check "page: a directory that is not there" test $? -eq 1 -a "$(wc -l <"$tmp/out")" -eq 1
if [ -w /dev/full ]; then
    "$carpool" report --html /dev/full "$tmp/report.json" >"$tmp/out" 2>&1
    check "page: a full disk is an error" test $? -eq 1 -a "$(wc -l <"$tmp/out")" -eq 1
    "$carpool" report "$tmp/report.json" >/dev/full 2>"$tmp/out"
    check "text: a full disk is an error" test $? -eq 1 -a "$(wc -l <"$tmp/out")" -eq 1
else
    skip "page: a full disk is an error" "no /dev/full"
fi
strange() { # description, JSON
    printf '%s\n' "$2" >"$tmp/strange.json"
    if "$carpool" report --html "$tmp/strange.html" "$tmp/strange.json" >"$tmp/out" 2>&1 &&
        "$carpool" report "$tmp/strange.json" >>"$tmp/out" 2>&1 &&
        tail -n 1 "$tmp/strange.html" | grep -q '</html>'; then
        ok "strange report: $1"
    else
        not_ok "strange report: $1"
        say "$(cat "$tmp/out")"
    fi
}
strange "nothing was called" '{"patterns": []}'
strange "members of other types" '{"patterns": [{}, 5, {"direct": 3, "tried": 4, "sizes": "x", "file": 1}],
    "version": 7, "settings": [], "ranks": "many"}'
strange "an order of other types" '{"patterns": [{"order": 5}, {"order": {"before": "x", "units": [1]}}]}'
strange "cells that do not fit" '{"patterns": [{"ranks": 2, "cell_ranks": 1, "bin_ranks": 1, "direct":
    {"cells": ["9:1 x", "0:-5 1:99999999999999999999999"], "sends": [1e300, "a"], "recvs": [-1]},
    "planned": {"cells": ["", "0:1:1"], "sends": [0, 0], "recvs": [null]}}]}'
strange "other numbers of ranks" '{"patterns": [{"ranks": 0, "cell_ranks": 0, "bin_ranks": -3, "direct":
    {"cells": [""], "sends": [1]}, "planned": {"cells": [""], "sends": [1]}}]}'

# --- in a browser
browser=
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && browser=$name && break
done
browse() { # argument..., file
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$tmp/browser" "$@" 2>"$tmp/browser.log"
}
if [ -z "$browser" ]; then
    skip "page: in a browser" "no chromium here (Debian's package chromium)"
else
    # a copy of the page that looks at itself: labels of a picture must not overlap, nor leave it
    cp "$tmp/page.html" "$tmp/looked-at.html"
    cat >>"$tmp/looked-at.html" <<'JS'
<script>
const wrong = [];
for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect(), seen = [];
    for (const text of svg.querySelectorAll('text')) {
        const box = text.getBoundingClientRect(), name = text.textContent;
        if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
            box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
            wrong.push(name + ' is cut off');
        for (const [other, b] of seen)
            if (box.left < b.right - 1 && b.left < box.right - 1 &&
                box.top < b.bottom - 3 && b.top < box.bottom - 3)
                wrong.push(name + ' overlaps ' + other);
        seen.push([name, box]);
    }
}
if (document.documentElement.scrollWidth > window.innerWidth)
    wrong.push('the page is wider than the window');
document.title = 'wrong:' + wrong.join('; ') + ':' + document.querySelectorAll('svg text').length;
</script>
JS
    for width in 1100 600 500; do
        browse --window-size=$width,3000 --dump-dom "file://$tmp/looked-at.html" >"$tmp/dom"
        title=$(sed -n 's/.*<title>\(wrong:[^<]*\)<.*/\1/p' "$tmp/dom" | head -n 1)
        case $title in
            wrong::[1-9]*) ok "page: in a browser, $width wide, no label overlaps another or is cut off" ;;
            *) not_ok "page: in a browser, $width wide, no label overlaps another or is cut off"
               say "${title:-$(cat "$tmp/browser.log")}" ;;
        esac
    done
    rm -f report.png
    browse --window-size=1100,3000 --screenshot="$PWD/report.png" "file://$tmp/page.html" >/dev/null
    check "page: a screenshot (report.png) that is not blank" \
        test -s report.png -a "$(wc -c <report.png 2>/dev/null || echo 0)" -gt 50000
fi

done_testing
