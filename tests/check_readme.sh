#!/bin/sh
# Runs every command of the README, in its order, as a new user would: with fewer ranks, in a directory
# of its own, and with the build directory's programs in place of installed ones.
#
#   check_readme.sh      with top_srcdir and top_builddir in the environment
#
# Commands that build and install are not run here: tests/run.sh builds so, check_installed.sh and
# check_wheel.sh install.
# Writes TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
# shellcheck source=tests/tap.sh disable=SC1091
. "$top_srcdir/tests/tap.sh"
[ -x "$top_builddir/cli/carpool" ] || skip_all "no carpool"
[ -x "$top_builddir/bench/spmv" ] || skip_all "no bench/spmv"
[ -e "$top_builddir/shim/.libs/libcarpool.so" ] || skip_all "no library"
command -v mpiexec.hydra >/dev/null 2>&1 || skip_all "no mpiexec.hydra"
clean_environment
make_scratch
cd "$tmp" || exit 2
PATH=$top_builddir/cli:$PATH
export PATH
ln -s "$top_builddir/bench" bench
bench/generate powerlaw --rows 300 --degree 6 >app.mtx || skip_all "no matrix"
cat >app <<APP
#!/bin/sh
exec "$top_builddir/bench/spmv" --iterations 40 "$tmp/app.mtx"
APP
chmod +x app

# indented by four or more; lines that end in \ are joined
awk '/^    / { sub(/^ +/, ""); if (sub(/ *\\$/, "")) printf "%s ", $0; else print }' \
    "$top_srcdir/README.md" >commands
check "the README has commands" test "$(wc -l <commands)" -ge 12

while IFS= read -r command; do
    case $command in
        "sudo apt-get install "*)
            if ! command -v apt-get >/dev/null 2>&1; then
                skip "README: $command" "no apt-get"
                continue
            fi
            run=$(printf '%s\n' "$command" | sed 's/^sudo apt-get/apt-get --simulate/')
            ;;
        "autoreconf -fi" | "./configure --prefix"* | "export PATH="* | "pip install"* | "tar -xf"*)
            # tests/run.sh, check_installed.sh, check_wheel.sh
            continue
            ;;
        *) run=$(printf '%s\n' "$command" | sed 's/-n 16 /-n 4 /') ;;
    esac
    timeout -k 5 100 sh -c "$run" >out 2>err </dev/null
    code=$?
    if [ $code -eq 0 ]; then
        ok "README: $command"
    else
        not_ok "README: $command"
        say "exit status $code"
        say "$(cat err out)"
    fi
done <commands
holds_schema "the reports hold to their schema" report.json carpool-profile/report.json
done_testing
