#!/bin/sh
# Documentation against code: what the tables list is documented, and what is documented exists.
#
#   check_docs.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
carpool=$top_builddir/cli/carpool
[ -x "$carpool" ] || skip_all "no $carpool"
clean_environment
make_scratch

variables=$("$carpool" settings | sed -n 's/^\(CARPOOL_[A-Z_]*\)=.*/\1/p')
strategies=$("$carpool" strategies | sed -n 's/^\([a-z0-9-]*\).*/\1/p' | sed '/^$/d')
commands=$("$carpool" --help | sed -n 's/^  \([a-z]*\)  *.*/\1/p')
calls=$(sed -n 's/^[A-Z]*(\([A-Z][A-Za-z_]*\),.*/MPI_\1/p' "$top_srcdir/shim/tables/collectives.def"
    sed -n 's/^\(BY_HAND\|MAY_WAIT\|COMES\)(\([A-Z][A-Za-z_]*\),.*/MPI_\2/p' "$top_srcdir/shim/tables/others.def"
    sed -n 's/^\(NEIGHBOR\|ALLTOALL\)(\([A-Z][a-z_]*\), \([A-Z][a-z_]*\), \([A-Z][a-z_]*\),$/MPI_\2 MPI_\3 MPI_\4/p' \
        "$top_srcdir/shim/tables/calls.def" | tr ' ' '\n'
    sed -n -e 's/^\(SEND\|ISEND\|SEND_INIT\|WRITTEN_C\|I*SENDRECV_C\)(\([A-Z][A-Za-z_]*\).*/MPI_\2 MPI_\2_c/p' \
        -e 's/^\(WRITTEN\|PROBES\|COMPLETES\)(\([A-Z][A-Za-z_]*\).*/MPI_\2/p' "$top_srcdir/shim/tables/pt2pt.def" | tr ' ' '\n')
options=$("$carpool" plan --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
calibrate_options=$("$top_builddir/calibrate/carpool-calibrate" --help 2>/dev/null |
    sed -n 's/^  \(-o, \)*\(--[a-z-]*\).*/\2/p')

# The text of documents: roff's \- and \(aq and font changes are taken out.
text_of() { # file...
    for document in "$@"; do
        sed -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\f[BIRP]//g' -e 's/\\&//g' \
            "$top_srcdir/$document"
    done
}

words_missing() { # words, document...: those that the documents do not contain as whole words
    words=$1
    shift
    text=$(text_of "$@")
    for word in $words; do
        printf '%s\n' "$text" | grep -Eq -e "(^|[^A-Za-z_0-9-])$word([^A-Za-z_0-9-]|\$)" ||
            echo "$word is not in $*"
    done
}

listed() { # description, words, document...: none of the words is missing, and there are some
    what=$1
    if [ -z "$2" ]; then
        not_ok "$what"
        say "the table to compare with is empty"
        return
    fi
    shift
    none "$what" "$(words_missing "$@")"
}

documents="README.md CHANGELOG.md CONTRIBUTING.md bench/README.md $(cd "$top_srcdir" &&
    echo doc/*.[137] doc/*.md bench/results/*.md)"
for document in $documents; do
    check "$document is written" test -s "$top_srcdir/$document"
done
check "the lists of settings and strategies are those of the tables" sh "$top_srcdir/doc/generate.sh" --check
listed "every setting is in the manual" "$variables" doc/carpool.7
listed "every intercepted call is in the manual" "$calls" doc/carpool.7
none "every call that is named in the manual exists" "$(
    for call in $(text_of doc/carpool.7 | grep -Eo 'MPI_[A-Z][a-z]+[A-Za-z_]*[a-z]' | sort -u); do
        printf '%s\n' "$calls" MPI_Init MPI_Init_thread MPI_Finalize | grep -qx "$call" ||
            echo "$call is not intercepted"
    done)"
listed "every strategy is in the manual" "$strategies" doc/carpool.1
listed "every command is in the manual" "$commands" doc/carpool.1
listed "every option of carpool plan is in the manual" "$options" doc/carpool.1
listed "every option of carpool report is in the manual" "$(
    "$carpool" report --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" doc/carpool.1
listed "every option of carpool compare is in the manual" "$(
    "$carpool" compare --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" doc/carpool.1
listed "every option of carpool map is in the manual" "$(
    "$carpool" map --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" doc/carpool.1
listed "every option of carpool doctor is in the manual" "$(
    "$carpool" doctor --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" doc/carpool.1
listed "every function, policy and option of the array is in its manual" "$(
    grep -Eo 'int carpool_array_[a-z]+|^    CARPOOL_ARRAY_[A-Z]+' "$top_srcdir/array/carpool_array.h" |
        sed 's/.* //')" doc/carpool_array.3
if [ -x "$top_builddir/calibrate/carpool-calibrate" ]; then
    listed "every option of carpool calibrate is in the manual" "$calibrate_options" doc/carpool.1
else
    skip "every option of carpool calibrate is in the manual" "no carpool-calibrate"
fi

# A name that ends in _ is the beginning of all names ("CARPOOL_* variables").
unknown_variables() {
    for document in $documents; do
        for name in $(text_of "$document" | grep -Eo 'CARPOOL_[A-Z][A-Z_]*' | grep -v '^CARPOOL_ARRAY' | sort -u); do
            printf '%s\n' "$variables" | grep -qx "$name" || echo "$document: $name does not exist"
        done
    done
}
none "every CARPOOL_ variable in the documents exists" "$(unknown_variables)"

unknown_strategies() {
    for document in $documents; do
        for name in $(text_of "$document" | grep -Eo 'CARPOOL_STRATEGY=[a-z]+(:[0-9]+)?' |
            sed 's/.*=//' | sort -u); do
            [ -z "$(CARPOOL_STRATEGY=$name "$carpool" settings 2>&1 >/dev/null)" ] ||
                echo "$document: strategy $name does not exist"
        done
    done
}
none "every strategy that is set in the documents exists" "$(unknown_strategies)"

dead_links() { # [text](file) and ![text](file) in Markdown
    for document in $documents; do
        for file in $(grep -Eo '\]\([^)#: ]+\)' "$top_srcdir/$document" | tr -d '])('); do
            [ -e "$top_srcdir/$(dirname "$document")/$file" ] || echo "$document: no $file"
        done
    done
}
none "every file that the documents link to exists" "$(dead_links)"

short() { # file, the most words that it may have
    words=$(wc -w <"$top_srcdir/$1")
    check "$1 takes minutes to read ($words words, at most $2)" test "$words" -le "$2"
}
short README.md 1100
short doc/architecture.md 4000
short doc/point-to-point.md 3000

long_sentences() { # the most words that one may have, file...: in the tree
    most=$1
    shift
    (cd "$top_srcdir" && awk -v most="$most" -f tests/long_sentences.awk "$@")
}
printf '%s\n' '# A heading is no sentence' '- An item that is' '  too long. A short one.' '' '    code does not count here' '' \
    '| cell | a cell that is long |' 'A short one. And at the' 'end another.' >"$tmp/long.md"
check "long sentences are found in items, tables and paragraphs" test "$(long_sentences 4 "$tmp/long.md" |
    sed 's/.*:\([0-9]*\): \([0-9]*\) words:.*/\1 \2/' | paste -s -d , -)" = "2 6,7 5,8 5"
none "no sentence has more than 35 words" "$(
    long_sentences 35 README.md CONTRIBUTING.md bench/README.md packaging/README.md $(cd "$top_srcdir" &&
        echo doc/*.md cli/README.md cli/*/README.md planner/*/README.md shim/README.md shim/*/README.md))"

if command -v man >/dev/null 2>&1 && command -v groff >/dev/null 2>&1; then
    for page in carpool.1 carpool.7 carpool_array.3; do
        none "$page has no warnings" "$(
            LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z \
                "$top_srcdir/doc/$page" 2>&1 >/dev/null)"
    done
else
    skip "the manual has no warnings" "man or groff is missing"
fi

done_testing
