#!/bin/sh
# Completion for bash against the command's own tables, in a real bash.
#
#   check_completion.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
carpool=$top_builddir/cli/carpool
[ -x "$carpool" ] || skip_all "no $carpool"
command -v bash >/dev/null 2>&1 || skip_all "no bash"
clean_environment

# What bash would offer after the words, the last one being completed; a line each.
offered() { # word...
    bash -c '
        . "$1"
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _carpool
        printf "%s\n" "${COMPREPLY[@]}"' bash "$top_srcdir/doc/carpool.bash" "$carpool" "$@" | sort -u
}

same() { # description, expected words, word...
    what=$1 expected=$(printf '%s\n' "$2" | sed '/^$/d' | sort -u)
    shift 2
    found=$(offered "$@")
    if [ -n "$expected" ] && [ "$expected" = "$found" ]; then
        ok "$what"
    else
        not_ok "$what"
        say "expected: $(echo $expected)"
        say "offered:  $(echo $found)"
    fi
}

commands=$("$carpool" --help | sed -n 's/^  \([a-z]*\)  *.*/\1/p')
settings=$("$carpool" settings | sed -n 's/^CARPOOL_\([A-Z_]*\)=.*/--\1=/p' | tr A-Z_ a-z-)
strategies=$("$carpool" strategies | sed -n 's/^\([a-z0-9-]*\).*/\1/p')
machines=$("$carpool" plan --machine ./none "$top_srcdir/tests/golden/hub-8.txt" 2>&1 |
    sed -n 's/.*built-in ones are //p' | sed 's/,//g' | tr ' ' '\n')

check "the file is bash's" bash -n "$top_srcdir/doc/carpool.bash"
same "commands" "$commands
--help
--version" ""
same "a command that is begun" "settings" se
same "options of run are the settings" "$settings
--profile
--yield
--help" run -
same "an option that is begun" "--ranks-per-node=" run --ran
same "values of --mode" "off
profile
auto
force" run --mode =
same "a value that is begun" "force" run --mode = fo
same "values of --check" "no
yes" run --check =
same "strategies of run" "$strategies" run --strategy =
same "strategies of plan" "$strategies" plan --strategy ""
same "built-in machines" "$machines" plan --machine ""
same "options of plan" "$("$carpool" plan --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
--help" plan x.mtx -
same "options of try" "$("$carpool" try --help | sed -n 's/^  \(--[a-z-]*=*\).*/\1/p')
--help" try -n 4 -
same "values of --modes" "off
auto
force" try --modes =
same "the program of try" "sha256sum" try -n 4 --repeat = 2 sha256su
same "options of report" "--html
--help" report -
same "options of compare" "--html
--help" compare a.json -
same "options of map" "$("$carpool" map --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
--help" map x.json -
same "values of --format of map" "hydra
slurm" map --format ""
same "the program of run" "sha256sum" run --mode = off sha256su
none "the program's own arguments are files" "$(offered run --mode = off ls -)"
none "a pattern is a file" "$(offered plan "")"

done_testing
