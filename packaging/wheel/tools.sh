#!/bin/sh
# A venv with the tools of requirements.txt, made once.
#
#   tools.sh FOLDER
#
# Exit status: 0 done, 1 failed, 77 PyPI cannot be reached.
set -u
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
wanted=$(dirname "$0")/requirements.txt
if cmp -s "$wanted" "$1/requirements.txt"; then exit 0; fi
python3 -m venv "$1" >&2 || { echo "$0: python3 cannot make a venv: install Debian's python3-venv" >&2; exit 1; }
"$1/bin/pip" install -q --disable-pip-version-check -r "$wanted" >"$1/pip.log" 2>&1 || {
    tail -n 2 "$1/pip.log" >&2
    grep -Eq 'connection|Temporary failure|No matching distribution' "$1/pip.log" && exit 77
    exit 1
}
cp "$wanted" "$1/requirements.txt"
