#!/bin/sh
# One run of a program on a simulated cluster, with the shim's sources in it.
#
#   simulate.sh [-x PROGRAM] BUILDDIR RANKS MACHINE TOPOLOGY [program's arguments]
#
# PROGRAM is one of bench/sim's: exchange (the default, repeats a pattern), spmv, cg, halo, bfs,
# order, allgather, simulated_graph (bench/graph), calibrate (carpool calibrate; with SIMULATE_POLL).
# SIMULATE_CFG has options for smpirun.
# MACHINE is a machine file (bench/sim/*.machine), which both the network and the planner take;
# TOPOLOGY is fattree, torus, dragonfly or switches. CARPOOL_ variables of the environment hold. Prints what
# the program prints, which is the same in every run. SIMULATE_SECONDS stops a run (default 600).
set -u
program=exchange
while getopts x: option; do
    case $option in
        x) program=$OPTARG ;;
        *) sed -n '4p' "$0" | cut -c 5- >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 4 ] || { sed -n '4p' "$0" | cut -c 5- >&2; exit 2; }
build=$(cd "$1" && pwd) || exit 2
program=$build/bench/sim/$program
[ -x "$program" ] || { echo "simulate.sh: $program is missing: is SimGrid installed?" >&2; exit 2; }
ranks=$2
machine=$3
topology=$4
shift 4
per_node=$(sed -n 's/^ranks_per_node //p' "$machine")
nodes=$(((ranks + per_node - 1) / per_node))
scratch=$(mktemp -d "${TMPDIR:-/tmp}/carpool-sim.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

awk -v n="$ranks" -v per="$per_node" 'BEGIN { for (i = 0; i < n; i++) print "n" int(i / per) }' \
    >"$scratch/hosts"
# SMPI copies the program once for each rank: without debugging symbols to save memory
strip -g -o "$scratch/${program##*/}" "$program" && program=$scratch/${program##*/}
[ -d /dev/shm ] && [ -w /dev/shm ] && export TMPDIR=/dev/shm
export CPL_SIM_MACHINE="$machine" CPL_SIM_TOPOLOGY="$topology" CPL_SIM_NODES="$nodes"
export CARPOOL_LEARN="${CARPOOL_LEARN:-1}" # simulated programs make few calls
export CARPOOL_MACHINE="$machine" CARPOOL_RANKS_PER_NODE="$per_node"
export CARPOOL_TOPOLOGY="${CARPOOL_TOPOLOGY:-pack:2 numa:1 core:$((per_node / 2)) pu:1}"

# Without these SMPI charges nothing per message, measures the host's processor, or lets what it
# knows of TCP into small messages. Every message is sent at once, without a handshake: both sides of
# a comparison are. Polls are free, since MPI_Waitsome makes one for
# every open request; a program that polls in a loop needs SIMULATE_POLL, the seconds of a poll, and
# so does one with nonblocking neighborhood collectives (cg --halo neighbor; 1e-7).
timeout "${SIMULATE_SECONDS:-600}" smpirun -np "$ranks" -platform "$build/bench/sim/.libs/platform.so" \
    -hostfile "$scratch/hosts" --cfg=smpi/privatization:dlopen --cfg=smpi/simulate-computation:no \
    --cfg=smpi/lat-factor:0:1 --cfg=smpi/bw-factor:0:1 --cfg=network/crosstraffic:0 \
    --cfg=network/weight-S:0 --cfg=smpi/async-small-thresh:1000000000 \
    --cfg=smpi/send-is-detached-thresh:1000000000 --cfg=surf/precision:1e-12 \
    --cfg=smpi/barrier:ompi_bruck --cfg=smpi/allreduce:rdb --cfg=smpi/allgather:mpich \
    --cfg=smpi/test:${SIMULATE_POLL:-0} --cfg=smpi/iprobe:1e-7 \
    --cfg=smpi/grow-injected-times:no ${SIMULATE_CFG:-} --log=root.thres:warning \
    "$program" "$@" >"$scratch/out" 2>"$scratch/err"
code=$?
# smpirun takes MPI_Abort for a good end
[ $code -ne 0 ] || ! grep -q 'MPI_Abort was called' "$scratch/err" || code=1
cat "$scratch/out"
if [ $code -ne 0 ]; then
    echo "simulate.sh: the simulation ended with $code" >&2
    cat "$scratch/err" >&2
fi
exit $code
