"""Settings of our sessions: what statements and answers mean, what looking refuses, and what each was opened with."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq.abc import PGconn

from pgqueue_admin.dialects.postgresql import value_adapters

_WORD = re.compile(r"(?:\\.|\S)+", re.DOTALL)  # a blank behind a backslash ends none
_SECONDS = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?)\s*(us|ms|s|min|h|d|)")
_ONLY_AT_START = {
    *("ignore_system_indexes", "post_auth_delay", "log_connections", "log_disconnections"),
    *("jit_debugging_support", "jit_profiling_support"),
}
_OURS = {"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres", "standard_conforming_strings": "on"}


def alone(raw: psycopg.Connection[Any], path: str = "pg_catalog, pg_temp") -> psycopg.Connection[Any]:
    """Of a session in which only we ask: names are those of ``path``, and all else is as ``anew`` sets it."""
    return anew(raw, {"search_path": path})


def anew(raw: psycopg.Connection[Any], ours: Mapping[str, str] | None = None) -> psycopg.Connection[Any]:
    """Set all that the session was to start with, and ``ours``: a pooler drops that. One round trip."""
    raw.execute(as_started(raw.pgconn, ours))
    return raw


def as_started(session: PGconn, ours: Mapping[str, str] | None = None) -> sql.Composed:
    """The statement of ``anew``. libpq is asked what it was told: the driver's own way fails for a bare number without
    a home, as accounts of clusters are.
    """
    said = {each.keyword.decode(): each.val.decode() for each in session.info if each.val}
    return setting(started_with(said) | dict(ours or {}))


def started_with(said: Mapping[str, str]) -> dict[str, str]:
    """What a session asks for with its start, by name. ``said``: its address and all else that libpq is told."""
    beside = {name: said[name] for name in ("application_name", "client_encoding") if name in said}
    return asked_for(said.get("options") or "") | beside


def asked_for(options: str) -> dict[str, str]:
    """Settings that ``options`` of an address name, as the server reads them; the last one of a name counts.

    Not those that a session can only start with: later on they are refused.
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
    """After how long the server ends a statement of a session with these options; None: never, as far as they say."""
    said = _DURATION.fullmatch(asked_for(options).get("statement_timeout", "").strip())
    return (float(said[1]) * _SECONDS[said[2]] or None) if said else None


def setting(values: Mapping[str, str]) -> sql.Composed:
    """One statement that sets them, whatever the search path is by then."""
    each = [sql.SQL("pg_catalog.set_config({}, {}, false)").format(*pair) for pair in values.items()]
    return sql.SQL("select pg_catalog.concat({})").format(sql.SQL(", ").join(each))


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Set what is otherwise. The server says these unasked, so nearly all sessions need no round trip.

    What is sent with the start would not do: PGTZ and PGDATESTYLE in the environment go beside it, and win.
    """
    value_adapters.fit(raw)
    raw.adapters.register_dumper(list, value_adapters.FlatListDumper)
    for name, ours in _OURS.items():
        told = raw.info.parameter_status(name) or ours
        if told.partition(",")[0] != ours:
            raw.execute(sql.SQL("set {} to {}").format(sql.Identifier(name), ours))
    return raw


# Sessions that only look: each look is a transaction that only reads, and runs no view or policy of anybody's. A view
# runs functions of its maker's as the reader, and a table may become one between two looks.
BEGIN_READ_ONLY = "begin read only"
# Not with the start: servers older than August 2024 do not know it, and would refuse the session.
_REFUSE_VIEWS = """select pg_catalog.set_config(name, 'view', false) from pg_catalog.pg_settings
where name operator(pg_catalog.=) 'restrict_nonsystem_relation_kind'"""


def only_looking(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Whatever the session's default is set to from within: each transaction that is begun with it says so itself."""
    raw.read_only = True
    raw.execute(_REFUSE_VIEWS)
    return raw


# What a session was opened with: what a statement sets off, a trigger or a policy, may set it otherwise for good.
# Who we are, what we may do, what statements mean, how long they wait, and what a commit is worth.
OPENED_WITH = (
    *("role", "session_authorization", "search_path", "row_security", "session_replication_role"),
    *("default_transaction_read_only", "default_transaction_isolation", "default_transaction_deferrable"),
    *("restrict_nonsystem_relation_kind", "transform_null_equals", "standard_conforming_strings", "client_encoding"),
    *("TimeZone", "DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits", "lc_numeric", "array_nulls"),
    *("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name"),
    *("synchronous_commit", "client_min_messages", "default_table_access_method", "temp_file_limit", "work_mem"),
)
# Named in full: whoever has set another search path may have a function of this name in it.
ASK = "select " + ", ".join(f"pg_catalog.current_setting('{name}', true)" for name in OPENED_WITH)

Given = tuple[bytes | None, ...]


def differences(given: Given, now: Given) -> list[str]:
    return [name for name, before, after in zip(OPENED_WITH, given, now, strict=True) if before != after]
