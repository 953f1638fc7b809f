#!/bin/sh
# A cluster on this machine: hosts that are namespaces, each with a name, network device, /dev/shm and shared memory
# of its own. MPI goes between them by TCP, inside them by shared memory.
#
#   bench/cluster.sh [-H HOSTS] [-p RANKS[,RANKS...]] [-d DELAY] [-r RATE] [-m SIZE[,SIZE...]] -- mpiexec's arguments
#
#   -H HOSTS   how many (default 4)
#   -p RANKS   on each host, in turn (default: the ranks of -n, spread evenly)
#   -d DELAY   of each host's device, in microseconds
#   -r RATE    of each host's device, as tc writes it (1gbit)
#   -m SIZE    of each host's /dev/shm, in turn, as mount writes it (default half of the memory); 0: none
#
# For example: bench/cluster.sh -H 4 -- -n 32 -genv LD_PRELOAD .../libcarpool.so ./spmv ...
#
# Ranks come in blocks: the first ones on host 1. On it mpiexec runs, too; UCX takes tcp, sm and self unless
# UCX_TLS says otherwise. CLUSTER_TURN is a command that the script runs beside the ranks, in a shell on host 1, with the
# functions `down HOST` and `up HOST`. Exits with mpiexec's status.
#
# Needs root (or its own user namespace with that), ip, nsenter, unshare, setpriv; tc for -d and -r. All
# that is made lives in namespaces, which end with this script, however it ends.
set -u

usage() {
    sed -n '5,11s/^#   //p' "$0" | cut -c 1-120 >&2
    exit 2
}
complain() { # text
    echo "cluster.sh: $1" >&2
    exit 2
}

# --- this script once more, in namespaces with which all of its processes end

if [ "${1:-}" != --inside ]; then
    for program in ip nsenter unshare setpriv; do
        command -v $program >/dev/null 2>&1 || complain "there is no $program: install iproute2 and util-linux"
    done
    unshare -n -p -u -i -m --fork true 2>/dev/null ||
        complain "namespaces cannot be made: run it as root, in a container with the right to (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
    tmp=$(mktemp -d /tmp/carpool-cluster.XXXXXX) || exit 2
    inside=''
    trap '[ -z "$inside" ] || kill -KILL $inside 2>/dev/null; wait; rmdir "$tmp" 2>/dev/null' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    setpriv --pdeathsig KILL unshare -n -p -m --propagation private --fork --kill-child --mount-proc \
        sh "$0" --inside "$tmp" "$@" <&0 &
    inside=$!
    wait $inside
    status=$?
    inside=''
    exit $status
fi
tmp=$2
shift 2
mount -t tmpfs tmpfs "$tmp" || complain "no tmpfs can be mounted on $tmp"

# --- what is asked for

n_hosts=4 ranks='' delay='' rate='' sizes=''
while getopts H:p:d:r:m: option; do
    case $option in
        H) n_hosts=$OPTARG ;;
        p) ranks=$OPTARG ;;
        d) delay=$OPTARG ;;
        r) rate=$OPTARG ;;
        m) sizes=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
is_number() { # text, least, most
    case $1 in ''|*[!0-9]*|??????????*) return 1 ;; esac
    [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}
is_number "$n_hosts" 1 64 || complain "-H $n_hosts: hosts are 1 to 64"
[ -z "$delay" ] || is_number "$delay" 0 10000000 || complain "-d $delay: a delay is a number of microseconds"
[ -z "$delay$rate" ] || command -v tc >/dev/null 2>&1 || complain "there is no tc: install iproute2"
mpiexec=${MPIEXEC:-mpiexec.hydra}
command -v "$mpiexec" >/dev/null 2>&1 || complain "there is no $mpiexec: name MPICH's in MPIEXEC"

# --- where ranks run

item() { # list with commas, number from 1: its item, the last one where it has fewer; "": the list is empty
    echo "$1" | awk -F , -v k="$2" '{ print $(k < NF ? k : NF) }'
}
n_ranks=1
previous=''
for argument in "$@"; do
    case $previous in -n|-np) n_ranks=$argument ;; esac
    previous=$argument
done
is_number "$n_ranks" 1 100000 || complain "-n $n_ranks is no number of ranks"
hosts='' host=1
while [ "$host" -le "$n_hosts" ]; do
    n=$(item "$ranks" "$host")
    [ -n "$n" ] || n=$(((n_ranks * host) / n_hosts - (n_ranks * (host - 1)) / n_hosts))
    is_number "$n" 0 100000 || complain "-p $ranks: numbers of ranks are separated by commas"
    [ "$n" -eq 0 ] || hosts="$hosts${hosts:+,}h$host:$n"
    host=$((host + 1))
done

# --- the hosts: processes that hold namespaces

await() { # file
    n_waits=0
    while ! [ -e "$1" ]; do
        [ $n_waits -lt 200 ] || complain "a host did not start: $(cat "$tmp/error" 2>/dev/null)"
        sleep 0.05
        n_waits=$((n_waits + 1))
    done
}

cat >"$tmp/begin" <<'HOST'
# on a new host: number, size of /dev/shm, folder
set -e
{
    hostname "h$1"
    mkdir "$3/cgroup$1"
    if mountpoint -q /sys/fs/cgroup; then mount --rbind /sys/fs/cgroup "$3/cgroup$1"; fi
    mount -t sysfs sysfs /sys # that of the namespace: UCX finds devices there
    if mountpoint -q "$3/cgroup$1"; then mount --rbind "$3/cgroup$1" /sys/fs/cgroup; fi
    case $2 in
        0) mount -t tmpfs -o ro,size=4k tmpfs /dev/shm ;;
        *) mount -t tmpfs -o "size=${2:-50%}" tmpfs /dev/shm ;;
    esac
    mount --bind "$3/hosts" /etc/hosts
    ip link set lo up
} 2>>"$3/error"
: >"$3/ready$1"
exec sleep infinity
HOST
cat >"$tmp/enter" <<ENTER
#!/bin/sh
# hydra's launcher: options, host, command
while :; do case \$1 in -*) shift ;; *) break ;; esac; done
holder=\$(cat "$tmp/\$1.pid") || exit 1
shift
exec nsenter -t "\$holder" -n -u -i -m sh -c "cd \"\\\$0\"; \$*" "\$PWD"
ENTER
chmod +x "$tmp/enter"

{ ip link set lo up && ip link add bridge type bridge && ip link set bridge up; } 2>"$tmp/error" ||
    complain "no bridge can be made: $(cat "$tmp/error")"
host=1
echo "127.0.0.1 localhost" >"$tmp/hosts"
while [ "$host" -le "$n_hosts" ]; do
    echo "10.77.0.$host h$host" >>"$tmp/hosts"
    host=$((host + 1))
done
host=1
while [ "$host" -le "$n_hosts" ]; do
    unshare -n -u -i -m --propagation private \
        sh "$tmp/begin" "$host" "$(item "$sizes" "$host")" "$tmp" &
    holder=$!
    await "$tmp/ready$host"
    echo $holder >"$tmp/h$host.pid"
    {
        ip link add "v$host" type veth peer name eth0 netns $holder &&
            ip link set "v$host" master bridge up &&
            nsenter -t $holder -n ip addr add "10.77.0.$host/24" dev eth0 &&
            nsenter -t $holder -n ip link set eth0 up
    } 2>"$tmp/error" || complain "host $host gets no network: $(cat "$tmp/error")"
    if [ -n "$delay$rate" ]; then
        # shellcheck disable=SC2086
        nsenter -t $holder -n tc qdisc add dev eth0 root netem ${delay:+delay ${delay}us} \
            ${rate:+rate $rate} limit 100000 2>"$tmp/error" ||
            complain "the kernel has no netem for -d and -r: $(cat "$tmp/error")"
    fi
    host=$((host + 1))
done

# --- the run

down() { ip link set "v$1" down; } # host
up() { ip link set "v$1" up; }
UCX_TLS=${UCX_TLS:-tcp,sm,self}
export UCX_TLS
first=${hosts%%:*}
if [ -n "${CLUSTER_TURN:-}" ]; then
    (eval "$CLUSTER_TURN") &
fi
quoted=''
for argument in "$@"; do
    quoted="$quoted '$(printf '%s' "$argument" | sed "s/'/'\\\\''/g")'"
done
"$tmp/enter" "$first" exec "$mpiexec" -launcher ssh -launcher-exec "$tmp/enter" -localhost "$first" \
    -hosts "$hosts" "$quoted"
