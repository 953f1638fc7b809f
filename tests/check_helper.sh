#!/bin/sh
# What the helper thread may reach (shim/state/service.h): it moves bytes and makes MPI go on, in a process
# that belongs to the program. Which functions those are is read from the calls in the library; calls through
# pointers are followed to whatever the sources put into members of these names.
#
#   check_helper.sh      with top_srcdir and top_builddir in the environment
#
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
LC_ALL=C
export LC_ALL
make_scratch
library=$top_builddir/shim/.libs/libcarpool.so

command -v objdump >/dev/null 2>&1 || { skip "what the helper thread reaches" "objdump is missing"; done_testing; exit; }
if nm -D "$library" | grep -qE ' __(asan|ubsan|gcov)_'; then
    skip "what the helper thread reaches" "built with a sanitizer or for coverage"
    done_testing
    exit
fi
[ -r "$library" ] || { not_ok "there is $library"; done_testing; exit; }

# --- what may be reached

# Functions that are called through pointers: what the files of a room put into members of these names
members="poll serve exchange/start exchange/progress carry/deliver carry/reduction carry/drop"
# where such calls are
pointing="advance complete_edge copy_payloads cpl_embed_take cpl_gathering_progress cpl_match_poll cpl_neighbor_op_free
    cpl_progress_serve deliver cpl_request_drop handle match_message poll_once receive_arrival try_send"

# Of MPI: messages, packing; Abort where no memory comes within a second. Reduce_local adds up, which the
# thread leaves to the program (by_thread in carry/embed.c).
of_mpi="Abort Get_count Improbe Imrecv_c Iprobe Irecv Irecv_c Isend Isend_c Pack_c Reduce_local_c Request_free
    Sendrecv_c Test Testany Testsome Type_free Unpack_c Wtime"

# Of libc: memory and its allocator (programs with an allocator of their own have no thread: service.c);
# sleeping, locks; the loader, where a function of MPI is first called; one line on stderr, without a signal
# for the program, before Abort; what compilers add.
of_libc="calloc free malloc realloc memcpy memmove memset nanosleep sched_yield syscall
    pthread_cond_signal pthread_mutex_lock pthread_mutex_unlock cpl_yield_waits dl_iterate_phdr dlopen dlsym
    pthread_sigmask sigaddset sigemptyset sigismember sigpending sigtimedwait fegetenv fesetenv
    write snprintf vsnprintf strcmp strlen __errno_location __assert_fail __stack_chk_fail __memcpy_chk __snprintf_chk
    __vsnprintf_chk"

# --- what is reached

# Names of functions; static ones as FILE:NAME.
for member in $members; do
    case $member in */*) room=${member%/*} member=${member#*/} ;; *) room='' ;; esac
    find "$top_srcdir/shim/$room" -name '*.c' -exec grep -oHE "(\.|->)$member *= *&?[a-z_0-9]+" {} + |
        sed -e 's/^.*\/\([^/:]*\):.*= *&*/\1:/' -e 's/^.*:cpl_/cpl_/'
done >"$tmp/targets"
echo cpl_progress_serve >>"$tmp/targets"
nm -l "$library" | sed -n 's/^0*\([0-9a-f]*\) [tT] \([^ \t]*\)\t.*\/\([^/:]*\):[0-9]*$/file \1 \3/p' >"$tmp/files"
[ -s "$tmp/files" ] || { skip "what the helper thread reaches" "the library has no debug information"; done_testing; exit; }

# Lines `address name` of functions, `call from to` of calls between them, `pointer from` of others.
objdump -d --no-show-raw-insn "$library" | awk '
    /^[0-9a-f]+ <.*>:$/ {
        at = $1; sub(/^0+/, "", at)
        name = $2; gsub(/[<>:]/, "", name)
        print "function", at, name
        next
    }
    $2 ~ /^(bnd|notrack)$/ { $2 = $3; $3 = $4; $4 = $5 }
    $2 ~ /^(call|callq|j[a-z]+)$/ {
        if ($3 ~ /^\*/) { print "pointer", at; next }
        target = $4; gsub(/[<>]/, "", target)
        if (target ~ /\+0x/ || target == name) next
        print "call", at, $3
    }' >"$tmp/calls"

# The names of all that is reached: `mpi NAME`, `libc NAME`, `pointing NAME`, `own NAME`.
awk '
    FILENAME == ARGV[1] { target[$1]; next }
    $1 == "file" { file[$2] = $3; next }
    $1 == "function" { name[$2] = $3; next }
    $1 == "pointer" { points[$2]; next }
    { calls[$2] = calls[$2] " " $3 }
    END {
        for (at in name) {
            plain = name[at]
            sub(/\.(constprop|isra|part|cold|lto_priv).*/, "", plain)
            if (plain in target || (file[at] ":" plain) in target) { todo[++n] = at; seen[at] }
        }
        while (n > 0) {
            at = todo[n--]
            k = split(calls[at], to, " ")
            for (i = 1; i <= k; i++)
                if (!(to[i] in seen)) { seen[to[i]]; todo[++n] = to[i] }
        }
        for (at in seen) {
            plain = name[at]
            if (plain == "") continue
            sub(/\.(constprop|isra|part|cold|lto_priv).*/, "", plain)
            if (plain ~ /@plt/) { sub(/@plt.*/, "", plain); print "libc", plain; continue }
            if (plain ~ /^cpl_real_MPI_/) { sub(/^cpl_real_MPI_/, "", plain); print "mpi", plain; continue }
            print "own", plain
            if (at in points) print "pointing", plain
        }
    }' "$tmp/targets" "$tmp/files" "$tmp/calls" | sort -u >"$tmp/reached"

beyond() { # kind, names that may be reached
    sed -n "s/^$1 //p" "$tmp/reached" | while read -r name; do
        case " $(echo "$2" | tr '\n' ' ') " in *" $name "*) ;; *) echo "$name" ;; esac
    done
}

check "it is read from the library" [ "$(grep -c '^own' "$tmp/reached")" -gt 50 ]
grep -q '^mpi Isend$' "$tmp/reached" || not_ok "messages are among what it reaches"
none "the helper thread calls no other function of MPI" "$(beyond mpi "$of_mpi")"
none "it calls no other function of libc" "$(beyond libc "$of_libc")"
none "it calls through no other pointers" "$(beyond pointing "$pointing")"
done_testing
