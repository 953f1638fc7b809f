#!/bin/sh
# Installs the Debian packages that are missing, if this is Debian (or a relative) and may be done.
#
#   install-deps.sh PACKAGE...
#
# On other systems it does nothing: configure says what is missing. Exits with 1 when packages are
# missing and could not be installed; then it has named them.
set -u
command -v dpkg-query >/dev/null 2>&1 || exit 0
command -v apt-get >/dev/null 2>&1 || exit 0

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | cut -c 1-9)" = installed ]
}

missing=
for package in "$@"; do
    is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    sudo=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo="sudo -n"
else
    echo "missing packages; as root: apt-get install$missing" >&2
    exit 1
fi
echo "installing:$missing"
log=$(mktemp) || exit 1
# shellcheck disable=SC2086
{
    $sudo apt-get update &&
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
} >"$log" 2>&1 </dev/null
code=$?
if [ $code -ne 0 ]; then
    tail -n 20 "$log" >&2
    echo "apt-get could not install:$missing" >&2
fi
rm -f "$log"
[ $code -eq 0 ]
