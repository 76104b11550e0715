"""Classifies a table by its columns; names only distinguish kinds with the same columns (wire sheet 12.10)."""

import re
from typing import Any

from pgqueue_admin.monitor.queue_table import TableKind

_QUEUE = {
    "id": {"uuid"},
    "expires": {"timestamp without time zone"},
    "headers": {"text"},
    "body": {"bytea"},
    "seq": {"integer", "bigint"},
}
_DELAYED = {"id": {"uuid"}, "headers": {"text"}, "body": {"bytea"}, "due": {"timestamp with time zone"}}
_NUMBERED_DELAYED = {  # SQL Server's
    "headers": {"text"},
    "body": {"bytea"},
    "due": {"timestamp without time zone"},
    "rowversion": {"bigint"},
}
_SQL_SERVERS = {"rowversion", "recoverable", "correlationid", "replytoaddress"}  # of transport tables there
_SUBSCRIPTION = {name: {"character varying", "text"} for name in ("queueaddress", "endpoint", "topic")}
_NUMBER = {"integer", "bigint"}
_TIME = {"timestamp without time zone", "timestamp with time zone"}
_UTC = {"timestamp without time zone"}
_LEASE = {"id": _NUMBER, "created_at": _UTC, "message": {"jsonb"}, "lock_expires_at": _UTC}
_LEASE_ARCHIVE = {"id": _NUMBER, "created_at": _TIME, "archived_at": _TIME, "message": {"jsonb"}, "handled_by": None}
_NEARLY = ("id", "headers", "body")

_ERROR_NAME = re.compile(r"(^|[._-])errors?$", re.IGNORECASE)
_AUDIT_NAME = re.compile(r"(^|[._-])audit$", re.IGNORECASE)
_PLATFORM_NAME = re.compile(r"^(Particular\.|ServiceControl\b)|(^|[._-])(errors?|audit)\.log$", re.IGNORECASE)

Columns = dict[str, str]
Judged = tuple[TableKind, str] | None


def judge(row: Any) -> Judged:
    """Kind and reason for a catalog row; None if it is no table of ours."""
    columns: Columns = row.columns
    if is_queue(columns):
        return _queue(row)
    if _has(columns, _DELAYED):
        return TableKind.DELAYED, "has id, headers, body and due"
    if _has(columns, _NUMBERED_DELAYED):
        return TableKind.DELAYED, "has headers, body, due and rowversion"
    if _has(columns, _SUBSCRIPTION):
        return TableKind.SUBSCRIPTION, "has queueaddress, endpoint and topic"
    if _has(columns, _LEASE):
        return TableKind.LEASE, "has id, message, created_at and lock_expires_at"
    if _has(columns, _LEASE_ARCHIVE):
        return TableKind.ARCHIVE, "finished and dead messages: has message, result, handled_by and archived_at"
    return (TableKind.UNKNOWN, _difference(columns)) if columns.keys() >= set(_NEARLY) else None


def is_queue(columns: Columns) -> bool:
    """Whether messages can be inserted and received, for any purpose."""
    return _has(columns, _QUEUE)


def _queue(row: Any) -> Judged:
    if not row.has_primary_key and row.sequence is None:
        return TableKind.ARCHIVE, "a copy: it has the five columns of a queue, but no key, and nothing numbers its rows"
    for pattern, kind, why in _BY_NAME:
        if pattern.search(row.table):
            return kind, why
    return TableKind.INPUT, _note(row.columns)


_BY_NAME = [
    (
        _PLATFORM_NAME,
        TableKind.PLATFORM,
        "its name is one that ServiceControl gives its own queues, or those it forwards copies to",
    ),
    (_ERROR_NAME, TableKind.ERROR, "its name says error"),
    (_AUDIT_NAME, TableKind.AUDIT, "its name says audit"),
]


def by_evidence(found: Any, told: Judged = None) -> Judged:
    """Kind of an input-shaped table whose newest messages all carry a header that only failed or audited messages have.

    The earlier verdict ``told`` is dropped only when none of them has it: a single stray message is not enough.
    """
    if told and {TableKind.ERROR: found.failed, TableKind.AUDIT: found.audited}[told[0]]:
        return told
    if found.rows and found.failed == found.rows:
        return TableKind.ERROR, f"its newest messages ({found.rows} looked at) all carry NServiceBus.FailedQ"
    if found.rows and found.audited == found.rows:
        return TableKind.AUDIT, f"its newest messages ({found.rows} looked at) all carry NServiceBus.ProcessingEnded"
    return None


def _note(columns: Columns) -> str:
    is_sql_servers = "rowversion" in columns
    extra = sorted(columns.keys() - _QUEUE.keys() - {"bodystring"} - (_SQL_SERVERS if is_sql_servers else set()))
    notes = [f"has id, expires, headers, body and {'rowversion' if is_sql_servers else 'seq'}"]
    notes += ["seq is widened to bigint"] if columns["seq"] == "bigint" and not is_sql_servers else []
    notes += [f"and columns of its own: {', '.join(extra)}"] if extra else []
    return "; ".join(notes)


def _difference(columns: Columns) -> str:
    missing = [name for name in _QUEUE if name not in columns]
    other = [
        f"{name} is {columns[name]}" for name, types in _QUEUE.items() if columns.get(name, "") not in {"", *types}
    ]
    return f"has {', '.join(_NEARLY)}, but " + "; ".join([*other, *(f"no {name}" for name in missing)])


def _has(columns: Columns, shape: dict[str, Any]) -> bool:
    return all(name in columns and (types is None or columns[name] in types) for name, types in shape.items())
