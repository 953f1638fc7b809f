#!/bin/sh
# A venv with the tools of requirements.txt, or with some of them, made once.
#
#   tools.sh FOLDER [NAME...]
#
# Exit status: 0 done, 1 failed, 77 PyPI cannot be reached.
set -u
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [NAME...]" >&2; exit 2; }
folder=$1
shift
names=$(echo "$*" | tr ' ' '|')
wanted=$(grep -E "^(${names:-[a-z]+})==" "$(dirname "$0")/requirements.txt")
[ "$wanted" != "$(cat "$folder/requirements.txt" 2>/dev/null)" ] || exit 0
python3 -m venv "$folder" >&2 || { echo "$0: python3 cannot make a venv: install Debian's python3-venv" >&2; exit 1; }
# shellcheck disable=SC2086
"$folder/bin/pip" install -q --disable-pip-version-check --retries 1 $wanted >"$folder/pip.log" 2>&1 </dev/null || {
    tail -n 2 "$folder/pip.log" >&2
    ! grep -Eq 'NewConnectionError|Temporary failure|ProxyError|timed out|No matching distribution' "$folder/pip.log" || exit 77
    exit 1
}
echo "$wanted" >"$folder/requirements.txt"
