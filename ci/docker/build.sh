#!/bin/sh
# Build the image of agents with no network in the build: build.sh [TAG] [BASE]
#
# Wheels and npm packages are fetched here by pip and npm, with whatever they are configured with,
# and kept in MLR_IMAGE_CACHE (default ~/.cache/mlrbench-image). BASE defaults to what base.sh
# builds. Needs python3 of the version that is in BASE (or MLR_PIP naming such a pip), and npm.
set -eu

tag=${1:-mlrbench-agents:ci}
base=${2:-mlrbench-base:ci}
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cache=${MLR_IMAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mlrbench-image}
pip=${MLR_PIP:-python3 -m pip}
mkdir -p "$cache"

npm=$cache/npm-$(sha256sum "$here/agents.txt" | cut -c 1-12)
if [ ! -d "$npm" ]; then
    rm -rf "$npm.part"
    # The image has a Node.js of its own, maybe newer than the one here.
    xargs npm install --global --prefix "$npm.part" --no-fund --no-audit --loglevel=error \
        --engine-strict=false <"$here/agents.txt" >&2
    mv "$npm.part" "$npm"
fi
wheels=$cache/wheels
mkdir -p "$wheels"
rm -f "$wheels"/pytest_mlrbench-*.whl
$pip wheel --quiet --wheel-dir "$wheels" --find-links "$wheels" \
    pip -r "$here/python.txt" "$repository[reference]" >&2

build() {
    DOCKER_BUILDKIT=0 docker build --quiet --network none --build-arg "BASE=$base" "$@" >&2
}

# First the command-line programs alone: as a layer of their own they are stored once.
printf 'ARG BASE\nFROM $BASE\nCOPY . /usr/local/\n' >"$cache/Dockerfile.npm"
build --tag "$tag-npm" --file "$cache/Dockerfile.npm" "$npm"
base=$tag-npm

context=$(mktemp -d "$cache/context.XXXXXX")
trap 'rm -rf "$context"' EXIT
mkdir -p "$context/offline" "$context/ci"
cp -r "$wheels" "$context/offline/wheels"
cp -r "$here" "$context/ci/docker"
build --tag "$tag" --file "$here/Dockerfile" "$context"
echo "$tag"
