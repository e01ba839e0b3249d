#!/bin/sh
# Installs missing Debian packages and a virtual environment, for the demo, for the tests, or for the tests that need
# PyTorch. `check` adds the linters to that of the tests.
# usage: setup/install.sh demo|test|check|transformer VENV-FOLDER
set -eu
slice=$1
venv=$2
here=$(cd "$(dirname "$0")" && pwd)
lock="$here/$slice.lock"
[ "$slice" != test ] || lock="$here/../requirements.lock"
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: $python is $("$python" --version 2>&1); Python 3.11 or newer is needed. Try: make setup PYTHON=python3.12" >&2
    exit 1
}

missing=
if command -v dpkg-query >/dev/null 2>&1; then
    lists="$here/packages-demo.txt"
    [ "$slice" != test ] || lists="$lists $here/packages-test.txt"
    for package in $(sed 's/#.*//' $lists); do
        # python3-dev is for the system's Python; another Python has its own headers.
        if [ "$package" = python3-dev ] && "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then
            continue
        fi
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
    done
else
    echo "setup: this is not a Debian-like system; see setup/packages-*.txt for what must be there (names are Debian's)." >&2
fi

if [ -n "$missing" ]; then
    command="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then
        root=
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        root="sudo -n"
    else
        echo "setup: these Debian packages are missing, and this user may not install them:$missing" >&2
        echo "setup: run this as root, then run make again:" >&2
        echo "    apt-get update && $command" >&2
        exit 1
    fi
    echo "setup: installing Debian packages:$missing"
    $root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $root $command >/dev/null
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
# Packages without a wheel are built apart, with the build tools that they ask for. Modules are compiled at their first
# import; most are never imported.
install="$venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 --no-compile"
if [ "$slice" = transformer ]; then
    echo "setup: installing PyTorch's CPU build"
    # If the package index does not have that file: PyTorch's index, with the build for this Python. A file with another
    # hash than that in torch.txt ends the set-up.
    if ! why=$($install --no-deps --require-hashes -r "$here/torch.txt" 2>&1); then
        case $why in
            *"DO NOT MATCH THE HASHES"*)
                echo "$why" >&2
                exit 1
                ;;
        esac
        $install --no-deps --index-url https://download.pytorch.org/whl/cpu torch==2.13.0
    fi
fi
echo "setup: installing Python packages from $(basename "$lock")"
$install --require-hashes -r "$lock"
[ "$slice" != test ] || $install --no-deps --require-hashes -r "$here/porcupine.txt"
rm -rf "$here/../voice_harness.egg-info" # from an earlier install: its entry points may be outdated
$install --no-deps -e "$here/.."
