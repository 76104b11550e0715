#!/bin/sh
# Builds deploy/Dockerfile and tries what it made, with no container engine and no registry: needs root, and Debian's
# buildah and debootstrap. Where the registry does not answer, a Debian with its own Python stands in for the base image.
# IMAGE_VOLUMES: folders and files of this machine that pip needs while it builds, as an index of one's own.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/pgqueue-image-XXXXXX")
base=$(sed -n 's/^FROM //p' deploy/Dockerfile)
buildah() { command buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }
trap 'buildah umount --all > /dev/null 2>&1 || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

if timeout 30 buildah pull --quiet "docker.io/library/$base" > /dev/null 2>&1; then
  echo "On $base."
else
  debootstrap --variant=minbase --include=python3,python3-pip,ca-certificates bookworm "$work/debian" > "$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; exit 1; }
  ln -s /usr/bin/python3 "$work/debian/usr/local/bin/python"
  rm -f "$work"/debian/usr/lib/python3*/EXTERNALLY-MANAGED # its pip may install, as the base's may
  rm -rf "$work"/debian/var/cache/apt/archives/*.deb "$work"/debian/var/lib/apt/lists/*
  made=$(buildah from scratch)
  buildah add --quiet "$made" "$work/debian" / > /dev/null
  buildah config --env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$made"
  buildah commit --quiet --rm "$made" "docker.io/library/$base" > /dev/null
  rm -rf "$work/debian"
  echo "No registry answers: on Debian bookworm with its Python in place of $base."
fi

set --
for each in /etc/ssl/certs /etc/pip.conf ${IMAGE_VOLUMES:-}; do
  [ ! -e "$each" ] || set -- "$@" --volume "$each:$each:ro"
done
buildah bud --quiet --isolation chroot --layers=false --pull-never "$@" --file deploy/Dockerfile --tag pgqueue-admin . > "$work/log" 2>&1 ||
  { tail -n 20 "$work/log"; exit 1; }
made=$(buildah from --pull-never localhost/pgqueue-admin)
IMAGE=$(buildah mount "$made") IMAGE_USER=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$made")
export IMAGE IMAGE_USER
.venv/bin/pytest -q -m image tests/installation/test_image.py
