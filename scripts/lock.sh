#!/bin/sh
# Writes each requirements*.lock anew: every version that is pinned, with the SHA-256 of all its files, for every system
# and Python from 3.11 on. Run it after a change of requirements*.txt or constraints.txt; needs uv (pip install uv).
set -eu
cd "$(dirname "$0")/.."
for asked in requirements*.txt; do
  uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
    --no-emit-find-links --custom-compile-command scripts/lock.sh \
    --constraints constraints.txt --output-file "${asked%.txt}.lock" "$asked" > /dev/null
done
