# bash completion for carpool(1). What there is to complete is asked from the command itself.

# The options of a subcommand, with = behind those that take it.
_carpool_options() { # carpool, subcommand
    "$1" "$2" --help 2>/dev/null | sed -n -e 's/^  \(--[a-z-]*=\).*/\1/p' -e 's/^  \(--[a-z-]*\)[^=a-z-].*/\1/p' \
        -e 's/^  \(--[a-z-]*\)$/\1/p'
    echo --help
}

# The values of an option: the words that a setting takes, strategies, built-in machines.
_carpool_values() { # carpool, option
    local variable=${2#--}
    variable=CARPOOL_$(printf '%s' "$variable" | tr a-z- A-Z_)
    case $2 in
        --strategy)
            echo auto
            "$1" strategies 2>/dev/null | sed -n 's/^\([a-z-][a-z0-9-]*\).*/\1/p'
            ;;
        --machine)
            "$1" plan --help 2>/dev/null | sed -n 's/^   *\([a-z][a-z]*\)   *.* ranks.*/\1/p'
            ;;
        --modes)
            printf '%s\n' off auto force
            ;;
        --format)
            if [[ ${COMP_WORDS[1]} == map ]]; then
                printf '%s\n' hydra slurm
            else
                printf '%s\n' table tsv json
            fi
            ;;
        *)
            "$1" settings 2>/dev/null | sed -n "/^$variable=/{n;s/.*; takes \([a-z|]*|[a-z]*\)\$/\1/p;}" | tr '|' '\n'
            ;;
    esac
}

_carpool() {
    local carpool=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
    local cur=${COMP_WORDS[COMP_CWORD]} option= k
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$("$carpool" --help 2>/dev/null |
            sed -n 's/^  \([a-z]*\)  *.*/\1/p') --help --version" -- "$cur"))
        return
    fi
    # run and try: after their options come a program and that one's arguments
    if [[ $command == run || $command == try ]]; then
        for ((k = 2; k < COMP_CWORD; k++)); do
            [[ ${COMP_WORDS[k]} == -- ]] && k=$((k + 1)) && break
            [[ ${COMP_WORDS[k]} == = ]] && k=$((k + 1)) && continue
            [[ $command == try && ${COMP_WORDS[k]} == -[nmo] ]] && k=$((k + 1)) && continue
            [[ ${COMP_WORDS[k]} == -* ]] || break
        done
        if ((k < COMP_CWORD)); then
            return # files
        elif [[ $cur != -* && $cur != = && ${COMP_WORDS[COMP_CWORD - 1]} != = ]]; then
            COMPREPLY=($(compgen -c -- "$cur"))
            return
        fi
    fi
    if [[ $cur == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 1]} cur=
    elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $command != run && $command != try && ${COMP_WORDS[COMP_CWORD - 1]} == --* ]]; then
        option=${COMP_WORDS[COMP_CWORD - 1]}
    fi
    if [[ -n $option && $option != --dump && $option != --no-lanes ]]; then
        COMPREPLY=($(compgen -W "$(_carpool_values "$carpool" "$option")" -- "$cur"))
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$(_carpool_options "$carpool" "$command")" -- "$cur"))
        if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
            compopt -o nospace 2>/dev/null
        fi
    fi
}

complete -o default -F _carpool carpool
