"""Settings of our sessions: formats, restrictions of read-only sessions, and the initial values of each."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq.abc import PGconn

from pgqueue_admin.dialects.postgresql import value_adapters

_WORD = re.compile(r"(?:\\.|\S)+", re.DOTALL)  # a blank after a backslash does not end a word
_SECONDS = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?)\s*(us|ms|s|min|h|d|)")
_ONLY_AT_START = {
    *("ignore_system_indexes", "post_auth_delay", "log_connections", "log_disconnections"),
    *("jit_debugging_support", "jit_profiling_support"),
}
_OURS = {"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres", "standard_conforming_strings": "on"}


def alone(raw: psycopg.Connection[Any], path: str = "pg_catalog, pg_temp") -> psycopg.Connection[Any]:
    """Prepare a session that only we use: set the search path to ``path``, all else as ``anew`` does."""
    return anew(raw, {"search_path": path})


def anew(raw: psycopg.Connection[Any], ours: Mapping[str, str] | None = None) -> psycopg.Connection[Any]:
    """Repeat the start-up settings, which a pooler drops, and set ``ours``. One round trip."""
    raw.execute(as_started(raw.pgconn, ours))
    return raw


def as_started(session: PGconn, ours: Mapping[str, str] | None = None) -> sql.Composed:
    """The statement of ``anew``. It reads libpq's parameters directly: the driver's method fails for a numeric uid
    without home folder, as clusters use.
    """
    said = {each.keyword.decode(): each.val.decode() for each in session.info if each.val}
    return setting(started_with(said) | dict(ours or {}))


def started_with(said: Mapping[str, str]) -> dict[str, str]:
    """Start-up settings by name. ``said``: libpq's parameters, those of the DSN included."""
    beside = {name: said[name] for name in ("application_name", "client_encoding") if name in said}
    return asked_for(said.get("options") or "") | beside


def asked_for(options: str) -> dict[str, str]:
    """Settings in the ``options`` parameter, parsed like the server does; the last one of a name counts.

    Without settings that are allowed only at start-up: later they are refused.
    """
    words = [re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) for word in _WORD.findall(options)]
    found: dict[str, str] = {}
    for before, word in zip(["", *words], words, strict=False):
        if before == "-c":
            named = word
        elif word.startswith(("-c", "--")) and len(word) > 2:
            named = word[2:]
        else:
            continue
        name, _, value = named.partition("=")
        found[name.replace("-", "_").lower()] = value
    return {name: value for name, value in found.items() if name not in _ONLY_AT_START}


@cache
def statement_seconds(options: str) -> float | None:
    """statement_timeout in these options, in seconds; None if unset or off."""
    said = _DURATION.fullmatch(asked_for(options).get("statement_timeout", "").strip())
    return (float(said[1]) * _SECONDS[said[2]] or None) if said else None


def setting(values: Mapping[str, str]) -> sql.Composed:
    """One statement that sets the values, independent of the search path."""
    each = [sql.SQL("pg_catalog.set_config({}, {}, false)").format(*pair) for pair in values.items()]
    return sql.SQL("select pg_catalog.concat({})").format(sql.SQL(", ").join(each))


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Set formats that differ. The server reports these on connect, so nearly all sessions need no round trip.

    Start-up options would not suffice: PGTZ and PGDATESTYLE in the environment override them.
    """
    value_adapters.fit(raw)
    raw.adapters.register_dumper(list, value_adapters.FlatListDumper)
    for name, ours in _OURS.items():
        told = raw.info.parameter_status(name) or ours
        if told.partition(",")[0] != ours:
            raw.execute(sql.SQL("set {} to {}").format(sql.Identifier(name), ours))
    return raw


# Monitoring sessions: each query is a read-only transaction, and runs no foreign view or policy. A view runs its
# creator's functions with the reader's rights, and a table may be replaced by one between two queries.
BEGIN_READ_ONLY = "begin read only"
# Not a start-up option: servers older than August 2024 do not know it, and would refuse the session.
_REFUSE_VIEWS = """select pg_catalog.set_config(name, 'view', false) from pg_catalog.pg_settings
where name operator(pg_catalog.=) 'restrict_nonsystem_relation_kind'"""


def only_looking(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Make the session read-only. Each transaction says so itself, in case code in it changes the session's default."""
    raw.read_only = True
    raw.execute(_REFUSE_VIEWS)
    return raw


# Settings recorded at opening: code that a statement runs, a trigger or a policy, may change them for good. They
# govern identity, rights, the meaning of statements, timeouts, and the durability of commits.
OPENED_WITH = (
    *("role", "session_authorization", "search_path", "row_security", "session_replication_role"),
    *("default_transaction_read_only", "default_transaction_isolation", "default_transaction_deferrable"),
    *("restrict_nonsystem_relation_kind", "transform_null_equals", "standard_conforming_strings", "client_encoding"),
    *("TimeZone", "DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits", "lc_numeric", "array_nulls"),
    *("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name"),
    *("synchronous_commit", "client_min_messages", "default_table_access_method", "temp_file_limit", "work_mem"),
)
# Qualified: a changed search path may contain a function of this name.
ASK = "select " + ", ".join(f"pg_catalog.current_setting('{name}', true)" for name in OPENED_WITH)

Given = tuple[bytes | None, ...]


def differences(given: Given, now: Given) -> list[str]:
    return [name for name, before, after in zip(OPENED_WITH, given, now, strict=True) if before != after]
