#!/bin/sh
# Create the virtual environment and install the pinned versions. Says in one sentence what is wrong when it cannot.
# usage: tools/setup.sh PYTHON VENV
set -eu
python=$1
venv=$2
log=$venv/install.log

fail() {
    printf 'btcnb: %s\n' "$1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || fail "there is no '$python' here: install Python 3.11 or newer, or name yours with 'make PYTHON=/path/to/python'."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' ||
    fail "$("$python" --version 2>&1) is too old: Python 3.11.5 or newer is needed; name one with 'make PYTHON=/path/to/python'."
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "this Python has no 'venv' module: install it (on Debian and Ubuntu the package python3-venv)."
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
[ "$free" -ge 3000 ] || fail "only $free MB are free on this disk and the installation needs 3000 MB: make room and try again."

if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
    echo "creating $venv"
    "$python" -m venv --clear "$venv" || fail "the virtual environment could not be created in $venv: see the message above."
fi
echo "installing pinned versions (about two minutes; log in $log)"
: >"$log"
# The lock is complete, so nothing is resolved here, and a file whose digest it does not name is refused.
install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps "$@" >>"$log" 2>&1
}
broken="the installation failed: the last lines are above, all of it is in $log; run the same command to try again."
# On Linux the lock names builds of torch for CPUs. Where pip is offered none of them, the public build with CUDA comes first.
if [ "$(uname -s)" = Linux ]; then
    awk '/^torch==/ { sub(/ /, "+cpu "); inside = 1 } inside { print } inside && !/\\$/ { exit }' requirements.lock >"$venv/torch-cpu.txt"
    install --dry-run --require-hashes --requirement "$venv/torch-cpu.txt" ||
        install --require-hashes --requirement requirements-cuda.lock || { tail -n 5 "$log" >&2; fail "$broken"; }
fi
install --require-hashes --requirement requirements.lock || { tail -n 5 "$log" >&2; fail "$broken"; }
install --no-build-isolation --editable packages/meanlink --editable ".[book,dask,dev]" ||
    { tail -n 5 "$log" >&2; fail "btcnb itself could not be installed: the last lines are above, all of it is in $log."; }
"$venv/bin/python" -m pip check --disable-pip-version-check >>"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; fail "the installed packages do not fit together: the last lines are above; requirements.lock may have to be made again, see tools/lock.py."; }
echo "compiling the hot loops (two to three minutes, this once)"
"$venv/bin/python" tools/compile.py >>"$log" 2>&1 ||
    echo "btcnb: the hot loops could not be compiled beforehand (why is in $log); whoever needs them first will do it."
