#!/bin/sh
# Re-creates static/pgqueue_admin/vendor/ and fonts/ byte for byte from npm: versions in package.json, checksums in vendor/SHA256SUMS.
# Needs npm, and only when a version changes; what it makes is kept in git. "scripts/vendor.sh --accept" writes new checksums.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
static="$root/static/pgqueue_admin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp "$root/package.json" "$root/package-lock.json" "$work"
(cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent)

take() { install -D -m 644 "$work/node_modules/$1" "$static/$2"; }
take htmx.org/dist/htmx.min.js       vendor/htmx.min.js
take htmx.org/LICENSE                vendor/htmx.LICENSE
take htmx-ext-sse/dist/sse.min.js    vendor/sse.min.js
take htmx-ext-sse/LICENSE            vendor/sse.LICENSE
take uplot/dist/uPlot.iife.min.js    vendor/uplot.min.js
take uplot/LICENSE                   vendor/uplot.LICENSE
for face in next mono; do
    package="@fontsource-variable/atkinson-hyperlegible-$face"
    take "$package/files/atkinson-hyperlegible-$face-latin-wght-normal.woff2" "fonts/hyperlegible-$face.woff2"
    take "$package/LICENSE" "fonts/hyperlegible-$face.LICENSE"
done

cd "$static"
if [ "${1:-}" = "--accept" ]; then
    sha256sum vendor/*.js vendor/*.LICENSE fonts/* > "$work/sums" && mv "$work/sums" vendor/SHA256SUMS
fi
sha256sum --check --quiet vendor/SHA256SUMS
echo "static/pgqueue_admin/vendor and fonts are as package.json says"
