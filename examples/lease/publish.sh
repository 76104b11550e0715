#!/bin/sh
# Publishes one message by a plain INSERT: examples/lease/publish.sh postgresql://user@host/database '{"kind": "render", "asset": "kettle.png"}'
set -eu
psql "$1" --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set message="$2" <<'SQL'
insert into messages.message (message) values (:'message');
SQL
