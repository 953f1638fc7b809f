#!/bin/sh
# Shows Carpool's main job, from nothing: builds, plans a 512-rank pattern with every strategy, then
# runs an unmodified program (bench/spmv) on 64 ranks without and with the preload and compares.
#
#   bench/demo.sh [MATRIX.mtx[.gz]]      default: a generated graph of about a million nonzeros
#
# Installs missing packages where it can. Builds in build/demo, where all output stays. Takes two to
# four minutes on two cores. Exits with 1 when the program's results differ with the preload.
set -u
started_in=$(pwd)
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
build=$root/build/demo
matrix=${1:-}
case $matrix in
    ''|/*) ;;
    *) matrix=$started_in/$matrix ;;
esac
if [ -n "$matrix" ] && ! [ -r "$matrix" ]; then
    echo "demo: cannot read $matrix; name a Matrix Market file" >&2
    exit 2
fi
LC_ALL=C
export LC_ALL
for name in $(env | sed -n 's/^\(CARPOOL_[A-Za-z_0-9]*\)=.*/\1/p'); do unset "$name"; done
unset LD_PRELOAD
n_ranks=64
n_runs=3

step() {
    printf '\n== %s\n' "$*"
}

run() { # log, command...
    log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null && return
    echo "demo: '$*' failed; the end of $log:" >&2
    tail -n 20 "$log" >&2
    exit 1
}

step "installing what is missing, building in build/demo"
sh tests/install-deps.sh autoconf automake libtool pkg-config make gcc libc6-dev mpich libmpich-dev \
    libhwloc-dev libjansson-dev uthash-dev zlib1g-dev libmetis-dev || exit 1
mkdir -p "$build" || exit 1
if ! [ -e configure ] || [ -n "$(find configure.ac -newer configure)" ]; then
    run "$build/autoreconf.log" autoreconf -fi
fi
cd "$build" || exit 1
if ! [ -e config.status ] || [ -n "$(find "$root/configure" -newer config.status)" ]; then
    run configure.log "$root/configure"
fi
run make.log make -j "$(getconf _NPROCESSORS_ONLN)"
mpiexec=$(sed -n 's/^MPIEXEC = *//p' Makefile)
partition=block
grep -q 'define HAVE_METIS 1' config.h && partition=metis

step "a communication pattern of 512 ranks, planned by every strategy"
if [ -n "$matrix" ]; then
    pattern_matrix=$matrix
    run_matrix=$matrix
else
    pattern_matrix=$build/fe.mtx
    run_matrix=$build/rmat.mtx
    echo "matrix: a 3-D finite-element mesh with some dense rows (bench/generate fe)"
    run generate.log bench/generate fe --nodes-per-side 34 --dense-rows 24 --dense-entries 3000 \
        -o "$pattern_matrix"
    run generate.log bench/generate rmat --scale 13 --edges-per-vertex 150 -o "$run_matrix"
fi
run pattern.log "$mpiexec" -n 1 bench/spmv --pattern "$build/pattern.txt" --parts 512 \
    --partition "$partition" "$pattern_matrix"
echo "column-parallel sparse matrix-vector multiply, $partition partition;"
echo "times are modelled for a cluster of 32-rank nodes (EDR InfiniBand)"
cli/carpool plan pattern.txt --strategy all || exit 1

step "the same program without and with the preload: $n_ranks ranks, MPI_Neighbor_alltoallv"
echo "bench/spmv, ${run_matrix##*/}, $partition partition; with the preload $n_runs runs, in each of them every"
echo "exchange also by the MPI library's own function, in turn with the intercepted one"
echo "more ranks than cores: all runs with bench/yield, so that waiting ranks give way"
library=$build/shim/.libs/libcarpool.so
yield=$build/bench/.libs/libyield.so

spmv() { # output, preload, --compare or nothing, options of mpiexec...
    out=$1
    preload=$2
    compare=$3
    shift 3
    run "$out" "$mpiexec" -n "$n_ranks" -genv LD_PRELOAD "$preload" "$@" bench/spmv --json $compare \
        --warmup "$n_warmup" --iterations 200 --partition "$partition" "$run_matrix"
}

value() { # key, file: a number or string of the JSON line
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"
}

median() { # key: of the runs with the preload
    for k in $(seq "$n_runs"); do value "$1" "ride.$k.json"; done |
        sort -n | awk '{ a[NR] = $1 } END { print NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2 }'
}

# The strategy of the exchange's plan; none: it is left to MPI in the end.
strategy() {
    sed -n 's/.*"strategy": "\(.*\)".*/\1/p' ride-report.json | head -n 1
}

# Carpool spends a hundredth of a program's time on finding out (CARPOOL_COST), which takes as long to pay as
# the ranks are many for the cores: so the exchanges before the timed ones take so long that it has been found out.
rm -f plain.json ride.*.json ride-report.json
n_warmup=150
spmv plain.json "$yield" ""
n_warmup=$(value time_median_us plain.json | awk '{ n = int(12e6 / $1); print (n < 150 ? 150 : n > 100000 ? 100000 : n) }')
spmv plain.json "$yield" ""
echo "   $n_warmup exchanges before the timed ones"
for k in $(seq "$n_runs"); do
    spmv "ride.$k.json" "$library:$yield" --compare -genv CARPOOL_REPORT "$build/ride-report.json"
    echo "   run $k: $(value library_median_us "ride.$k.json") us by MPI," \
        "$(value time_median_us "ride.$k.json") us by $(strategy)"
done
figure() { # direct or planned, key
    awk -v side="\"$1\":" -v key="\"$2\":" '$1 == side { found = 1 }
        found && $1 == key { gsub(/[^0-9]/, ""); print; exit }' ride-report.json
}

echo
cli/carpool report ride-report.json
step "direct against plan (mode auto, strategy $(strategy), $n_ranks ranks)"
printf '%-34s %18s %18s\n' "" "without Carpool" "with Carpool"
printf '%-34s %18s %18s\n' "messages sent by the busiest rank" "$(figure direct sends_max)" "$(figure planned sends_max)"
printf '%-34s %18s %18s\n' "of these by MPI" "$(figure direct sends_max)" "$(figure planned mpi_max)"
printf '%-34s %18s %18s\n' "time per exchange, median, us" "$(median library_median_us)" "$(median time_median_us)"
printf '%-34s %37s\n' "time without / time with" "$(median speedup_median)"
same=yes
for k in $(seq "$n_runs"); do
    [ "$(value checksum plain.json)" = "$(value checksum "ride.$k.json")" ] || same=no
done
printf '%-34s %18s %18s\n' "checksum of the result" "$(value checksum plain.json)" \
    "$(value checksum ride.1.json)"
if [ "$same" = yes ]; then
    echo "the results are the same"
else
    echo "THE RESULTS DIFFER" >&2
    exit 1
fi
