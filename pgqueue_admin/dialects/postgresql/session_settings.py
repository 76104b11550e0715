"""Settings that change what our statements and their answers mean, whatever a server, database or role has them at."""

from typing import Any

import psycopg
from psycopg import sql

from pgqueue_admin.dialects.postgresql import value_loaders

_OURS = {"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres", "standard_conforming_strings": "on"}


def alone(raw: psycopg.Connection[Any], path: str = "pg_catalog, pg_temp") -> psycopg.Connection[Any]:
    """Of a session in which only we ask: names are those of ``path``, also where a pooler has dropped what the session
    was to start with. One round trip.
    """
    raw.execute("select pg_catalog.set_config('search_path', %s, false)", [path])
    return raw


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Set what is otherwise. The server says these unasked, so nearly all sessions need no round trip.

    What is sent with the start would not do: PGTZ and PGDATESTYLE in the environment go beside it, and win.
    """
    value_loaders.fit(raw)
    for name, ours in _OURS.items():
        told = raw.info.parameter_status(name) or ours
        if told.partition(",")[0] != ours:
            raw.execute(sql.SQL("set {} to {}").format(sql.Identifier(name), ours))
    return raw
