# shellcheck shell=sh
# TAP from shell scripts. Sourced; then any number of ok, not_ok, check and skip, and at last done_testing.

tap_n=0
tap_failed=0

clean_environment() { # none of Carpool's settings but one, messages in English
    for tap_name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$tap_name"; done
    LC_ALL=C
    CARPOOL_LEARN=1 # test programs are over before planning pays
    export LC_ALL CARPOOL_LEARN
}

make_scratch() { # the directory $tmp, removed when the script ends
    tmp=$(mktemp -d) || exit 2
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 1' HUP INT TERM
}

ok() { # description
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1"
}

not_ok() { # description
    tap_n=$((tap_n + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_n - $1"
}

skip() { # description, reason
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}

say() { # a text, as comments
    printf '%s\n' "$1" | sed 20q | cut -c 1-300 | sed 's/^/#   /'
}

check() { # description, command...; ok when the command succeeds
    tap_what=$1
    shift
    if "$@"; then ok "$tap_what"; else not_ok "$tap_what"; fi
}

none() { # description, text; ok when the text is empty: it lists what is wrong
    if [ -z "$2" ]; then
        ok "$1"
    else
        not_ok "$1"
        say "$2"
    fi
}

exit_text() { # exit code of a program under timeout, its limit in seconds
    case $1 in
        124|137) echo "stopped after $2 s: a limit of time" ;;
        *) echo "exit code $1" ;;
    esac
}

holds_schema() { # description, report...
    tap_what=$1
    shift
    if [ -x "$top_builddir/tests/schema" ]; then
        none "$tap_what" "$("$top_builddir/tests/schema" "$top_srcdir/doc/report.schema.json" "$@" 2>&1)"
    else
        skip "$tap_what" "tests/schema is not built"
    fi
}

strategies_to_test() { # carpool; the examples of every strategy, and auto
    "$1" strategies | sed -n -e '/^[a-z][a-z0-9-]*$/p' -e 's/^    for example //p' | tr -d ,
}

done_testing() {
    echo "1..$tap_n"
    [ $tap_failed -eq 0 ]
}

skip_all() { # reason
    echo "1..0 # SKIP $1"
    exit 0
}

# $gently: before a launcher of ranks that preload bench's libyield. With the real-time priority that it
# asks for, ranks that wait at the start hold up for a second those that are still starting; without
# the right to it runs are several times as fast.
find_gently() {
    gently=
    tap_drop="setpriv --inh-caps=-sys_nice --bounding-set=-sys_nice"
    # shellcheck disable=SC2034,SC2086
    if $tap_drop true 2>/dev/null; then gently=$tap_drop; fi
}
