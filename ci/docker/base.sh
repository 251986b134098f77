#!/bin/sh
# Build a small Debian image without a registry: base.sh [TAG]   (default mlrbench-base:ci)
#
# Needs root, debootstrap and an engine. The archive is the one apt is configured with on this
# machine; MLR_DEBIAN_MIRROR and MLR_DEBIAN_SUITE say otherwise. What was unpacked is kept in
# MLR_IMAGE_CACHE (default ~/.cache/mlrbench-image) as one tar file, by the day's list of packages.
set -eu

tag=${1:-mlrbench-base:ci}
packages=python3,strace,socat,git,procps,ca-certificates
suite=${MLR_DEBIAN_SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")}
mirror=${MLR_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' "Codename: $suite" 2>/dev/null | head -n 1)}
cache=${MLR_IMAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mlrbench-image}
key=$(printf '%s %s' "$suite" "$packages" | sha256sum | cut -c 1-12)
archive=$cache/base-$key.tar

if [ ! -s "$archive" ]; then
    mkdir -p "$cache"
    root=$(mktemp -d "$cache/root.XXXXXX")
    trap 'rm -rf "$root"' EXIT
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror" >&2
    chroot "$root" useradd --uid 1000 --user-group --create-home --shell /bin/bash agent
    # Nothing of this machine's set-up may stay in the image.
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* \
        "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/var/log/* \
        "$root"/etc/apt/sources.list "$root"/etc/resolv.conf "$root"/etc/hostname
    tar -C "$root" --numeric-owner -cf "$archive.part" .
    mv "$archive.part" "$archive"
fi
docker import \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8' \
    --change 'CMD ["/bin/sh"]' \
    "$archive" "$tag" >/dev/null
echo "$tag"
