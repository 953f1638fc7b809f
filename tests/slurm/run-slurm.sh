#!/bin/sh
# Programs under Slurm's srun, on a cluster of four nodes that are this machine.
#
#   run-slurm.sh BUILDDIR LIBCARPOOL YIELDLIB [FILTER]
#
# BUILDDIR is the tests' folder of a build, with mpi/ and promise/; YIELDLIB is preloaded in all runs
# (waiting ranks give way). FILTER is an extended regular expression for "program arguments". Each
# line of `cases` runs without the library, in mode force, and in turn in mode off or auto, and must print the same.
# `carpool run` and the TaskProlog of doc/install.md are tried as well. TEST_TIMEOUT: the seconds of a run. TEST_LOGS: a folder that gets Slurm's logs.
#
# Needs Debian's slurm-wlm and munge, or others'; without, everything is skipped. The daemons belong to
# this script: their configuration, sockets, states and logs are in a temporary folder, and they are
# ended with it. Writes TAP; exits with 1 when a test failed.
set -uf
# shellcheck source=tests/tap.sh disable=SC1091
. "$(dirname "$0")/../tap.sh"
# shellcheck disable=SC3045  # known to the shells in use; without it there may be core files
ulimit -c 0 2>/dev/null

[ $# -ge 3 ] || { echo "usage: $0 BUILDDIR LIBCARPOOL YIELDLIB [FILTER]" >&2; exit 2; }
absolute() { # a file
    echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}
build=$(cd "$1" && pwd) library=$(absolute "$2") yield=$(absolute "$3")
carpool=$build/../cli/carpool
filter=${4:-.}
list=$(absolute "$(dirname "$0")/cases")
limit=${TEST_TIMEOUT:-60}
n_nodes=4
n_ranks=8
[ -e "$library" ] || skip_all "no $library"
PATH=$PATH:/usr/sbin:/sbin
for program in srun sinfo scancel squeue slurmctld slurmd munged; do
    command -v $program >/dev/null 2>&1 || skip_all "no $program: install slurm-wlm and munge"
done
clean_environment
for name in $(env | sed -n 's/^\(SLURM_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
find_gently
tmp=$(mktemp -d /tmp/carpool-slurm.XXXXXX) || exit 2 # sockets need a short path
daemons=

ended() { # ids; waits up to ten seconds for their end
    n_waits=0
    while [ $n_waits -lt 100 ]; do
        living=
        for id in "$@"; do
            if kill -0 "$id" 2>/dev/null; then living="$living $id"; fi
        done
        [ -n "$living" ] || return 0
        sleep 0.1
        n_waits=$((n_waits + 1))
    done
    return 1
}

end_jobs() { # that a run left
    SLURM_CONF=$tmp/slurm.conf squeue -h -o %i 2>/dev/null >"$tmp/jobs" || return
    [ -s "$tmp/jobs" ] || return
    # shellcheck disable=SC2046
    scancel -Q -s KILL $(cat "$tmp/jobs") 2>/dev/null
    n_waits=0
    while [ $n_waits -lt 50 ] && [ -n "$(squeue -h -o %i 2>/dev/null)" ]; do
        sleep 0.1
        n_waits=$((n_waits + 1))
    done
}

# shellcheck disable=SC2086
end_daemons() {
    [ -n "$daemons" ] || return
    kill $daemons 2>/dev/null
    ended $daemons || kill -KILL $daemons 2>/dev/null
    wait $daemons 2>/dev/null
    daemons=
}

leave() {
    trap '' HUP INT TERM
    [ -z "$daemons" ] || end_jobs
    end_daemons
    if [ -n "${TEST_LOGS:-}" ]; then cp "$tmp"/*.log "$TEST_LOGS" 2>/dev/null; fi
    rm -rf "$tmp"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

write_configuration() { # first of the ports
    host=$(hostname -s 2>/dev/null || hostname)
    mkdir -p "$tmp/state"
    echo '#!/bin/sh' >"$tmp/prolog"
    chmod 755 "$tmp/prolog"
    cat >"$tmp/slurm.conf" <<CONF
ClusterName=carpool
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$1
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$tmp/munge.socket
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool-%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd-%n.pid
SlurmctldLogFile=$tmp/slurmctld.log
SlurmdLogFile=$tmp/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MailProg=/bin/true
TaskProlog=$tmp/prolog
PartitionName=all Nodes=n[1-$n_nodes] Default=YES State=UP
CONF
    node=1
    while [ $node -le $n_nodes ]; do
        echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$(($1 + node)) CPUs=2"
        node=$((node + 1))
    done >>"$tmp/slurm.conf"
    # newer versions look for control groups, whatever the plugins are
    version=$(slurmd -V | tr -dc 0-9. | cut -d. -f1)
    [ "${version:-0}" -lt 23 ] || echo "CgroupPlugin=disabled" >"$tmp/cgroup.conf"
}

start_munge() {
    head -c 1024 /dev/urandom >"$tmp/key" && chmod 400 "$tmp/key" && chmod 755 "$tmp" || return 1
    munged --foreground --force --socket="$tmp/munge.socket" --key-file="$tmp/key" \
        --pid-file="$tmp/munged.pid" --log-file="$tmp/munged.log" --seed-file="$tmp/seed" \
        >"$tmp/munged-out.log" 2>&1 </dev/null &
    munge=$!
    daemons=$munge
}

start_slurm() { # first of the ports; ok when all nodes are there
    write_configuration "$1"
    slurmctld -D >"$tmp/slurmctld-out.log" 2>&1 </dev/null &
    daemons="$daemons $!"
    node=1
    while [ $node -le $n_nodes ]; do
        # shellcheck disable=SC2086
        $gently slurmd -D -N n$node >"$tmp/slurmd-n$node-out.log" 2>&1 </dev/null &
        daemons="$daemons $!"
        node=$((node + 1))
    done
    n_waits=0
    while [ $n_waits -lt 150 ]; do
        [ "$(sinfo -h -o '%T %D' 2>/dev/null)" != "idle $n_nodes" ] || return 0
        sleep 0.2
        n_waits=$((n_waits + 1))
    done
    return 1
}

SLURM_CONF=$tmp/slurm.conf
export SLURM_CONF
start_munge || skip_all "munged cannot be started"
up=no
for try in 1 2 3; do # other ports where some were taken
    if start_slurm $((20000 + ($$ * 5 + try * 7919) % 20000)); then
        up=yes
        break
    fi
    end_daemons
    rm -rf "$tmp/state" "$tmp"/spool-*
    start_munge || break
done
if [ $up = no ]; then
    say "$(cat "$tmp"/*.log)"
    skip_all "Slurm cannot be started here"
fi

# A run on all nodes: $tmp/NAME.out and .err; $code, and $why, what is wrong with it, are set.
launch() { # name, command...
    out=$tmp/$1
    shift
    timeout -k 10 "$limit" srun -Q --mpi=pmi2 -N $n_nodes -n $n_ranks --overcommit "$@" \
        >"$out.out" 2>"$out.err" </dev/null
    code=$?
    why=
    case $code in
        0) return 0 ;;
        124 | 137) why="took longer than its limit of $limit s" && end_jobs ;;
        *) why="exit code $code" ;;
    esac
    return 1
}

# The program of a line; in mode force its report is looked at.
under() { # mode
    rm -f "$tmp/report.json"
    # shellcheck disable=SC2086
    launch now env LD_PRELOAD="$library:$yield" CARPOOL_MODE="$1" CARPOOL_HOLD=20000 \
        CARPOOL_REPORT="$tmp/report.json" "$build/$program" $args
    cmp -s "$tmp/ref.out" "$tmp/now.out" || why="${why:+$why, }output differs"
    case $1:$flags in force:*planned*)
        grep -q '"calls_planned": [1-9]' "$tmp/report.json" 2>/dev/null || why="${why:+$why, }no call was planned" ;;
    esac
    if [ -z "$why" ]; then
        ok "$what, $1"
        return
    fi
    not_ok "$what, $1: $why"
    say "$(diff "$tmp/ref.out" "$tmp/now.out")"
    say "$(cat "$tmp/now.err")"
}

another=off # with which mode the next line is tried, too

test_line() {
    what="$program $args"
    what="${what% }, srun, $n_ranks ranks"
    echo "$program $args" | grep -Eq -e "$filter" || return
    if ! [ -x "$build/$program" ]; then
        case " $flags " in
            *" optional "*) skip "$what" "not built" ;;
            *) not_ok "$what: not built" ;;
        esac
        return
    fi
    # shellcheck disable=SC2086
    if ! launch ref env LD_PRELOAD="$yield" "$build/$program" $args; then
        not_ok "$what, without the library: $why"
        say "$(cat "$tmp/ref.out" "$tmp/ref.err")"
        return
    fi
    under force
    under $another
    case $another in off) another=auto ;; *) another=off ;; esac
}

# Whether ranks come through MPI_Init at all: if not, each run would take as long as it may.
program=promise/attributes args=plain flags=
limit_of_runs=$limit
limit=$((limit < 30 ? limit : 30))
# shellcheck disable=SC2086
if ! launch ref env LD_PRELOAD="$yield" "$build/$program" $args; then
    say "$(cat "$tmp/ref.err")"
    skip_all "MPI programs do not run under srun here: $why"
fi
if ! launch now env LD_PRELOAD="$library:$yield" CARPOOL_MODE=off "$build/$program" $args; then
    not_ok "programs start under srun: $why"
    say "$(cat "$tmp/now.err")"
    done_testing
    exit
fi
ok "programs start under srun"
limit=$limit_of_runs

grep -v '^#' "$list" | grep '|' >"$tmp/cases"
while IFS='|' read -r program args flags; do
    program=$(echo $program) args=$(echo $args) flags=$(echo $flags)
    test_line
done <"$tmp/cases"

# carpool run, which becomes the program on each rank
program=mpi/neighbors args="--op alltoallv --graphs 1 --calls 20 --seed 6"
if [ "$filter" = . ]; then
    # shellcheck disable=SC2086
    launch ref env LD_PRELOAD="$yield" "$build/$program" $args
    rm -f "$tmp/report.json"
    # shellcheck disable=SC2086
    launch now "$carpool" run --yield --mode=force --report="$tmp/report.json" "$build/$program" $args
    cmp -s "$tmp/ref.out" "$tmp/now.out" || why="${why:+$why, }output differs"
    grep -q '"calls_planned": [1-9]' "$tmp/report.json" 2>/dev/null || why="${why:+$why, }no call was planned"
    none "srun carpool run" "${why:+$why
$(cat "$tmp/now.err")}"
    launch now "$carpool" run --no-such-option "$build/$program"
    none "srun carpool run: an error is told once on each node" \
        "$([ "$code" -eq 2 ] && [ "$(grep -c 'no option' "$tmp/now.err")" -eq $n_nodes ] || cat "$tmp/now.err")"

    # the document's TaskProlog, with this library
    awk '/^    #!/ { text = 1 } text && !/^    / { exit } text { print substr($0, 5) }' \
        "$(dirname "$0")/../../doc/install.md" | sed "s#^library=.*#library=$library#" >"$tmp/prolog"
    launch now sh -c 'echo "${LD_PRELOAD:-none}"'
    check "TaskProlog: the library is preloaded" test "$(sort -u "$tmp/now.out")" = "$library"
    CARPOOL_MODE=off launch now sh -c 'echo "${LD_PRELOAD:-none}"'
    check "TaskProlog: not in mode off" test "$(sort -u "$tmp/now.out")" = none
    rm -f "$tmp/report.json"
    export CARPOOL_MODE=force CARPOOL_REPORT="$tmp/report.json"
    # shellcheck disable=SC2086
    LD_PRELOAD=$yield launch now "$build/$program" $args
    unset CARPOOL_MODE CARPOOL_REPORT
    cmp -s "$tmp/ref.out" "$tmp/now.out" || why="${why:+$why, }output differs"
    grep -q '"calls_planned": [1-9]' "$tmp/report.json" 2>/dev/null || why="${why:+$why, }no call was planned"
    none "TaskProlog: a program is carried" "${why:+$why
$(cat "$tmp/now.err")}"
fi
done_testing
