"""Creates the engine's tables beside the queues: once, completely, and never over another program's (L2)."""

import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pgqueue_admin.archive import foreign_code
from pgqueue_admin.archive.errors import SchemaAdoptable, SchemaForeign, SchemaNewer
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

log = logging.getLogger(__name__)
VERSION = 13

_NOTE_RETRIED = ["note_retried", "pin_functions"]  # replacing a function resets its search path
_SINCE_11 = ["create_schedule_functions"]
_SINCE_10 = ["create_failure_tallies", *_SINCE_11]
_SINCE_9 = ["add_lock_holder", "create_lease_rules", *_SINCE_10]
_SINCE_8 = ["add_crossings", *_SINCE_9]
_SINCE_6 = ["add_sent_as", *_SINCE_8]
_SINCE_5 = ["add_fingerprints", *_SINCE_6]
_SINCE_4 = ["note_retried", "link_retries", "deliver_dead", "pin_functions", "create_schedules", *_SINCE_5]
_SINCE_3 = ["add_lease", "mark_endings", *_SINCE_4]
_SINCE_2 = ["add_tokens", *_SINCE_3]
_RENAMED = {"rename_columns": 8, "rename_item_columns": 13}  # for versions before this one
# missing steps by version, once its columns have their present names
_SINCE = {
    1: ["create_readers", *_SINCE_2],
    2: _SINCE_2,
    3: _SINCE_3,
    4: _SINCE_4,
    5: [*_NOTE_RETRIED, *_SINCE_5],
    6: [*_NOTE_RETRIED, *_SINCE_6],
    7: [*_NOTE_RETRIED, *_SINCE_8],
    8: _SINCE_8,
    9: _SINCE_9,
    10: _SINCE_10,
    11: _SINCE_11,
    12: [],
}

_STATUS = {"success", "failed", "rejected", "lock_expired"}
_ARCHIVE = {
    "id integer",
    "created_at timestamp without time zone",
    "archived_at timestamp without time zone",
    "message jsonb",
    "result message_status",
    "handled_by character varying",
    "details text",
}
_HEAD = f"""-- The engine's tables (archive, lease queue, operation items), version {VERSION}, where none of them is.
-- Made by `manage.py engine_schema --print`. Whoever runs it owns them: psql -v ON_ERROR_STOP=1 -f lease-queue.sql
"""
_MESSAGE = {
    "id integer",
    "created_at timestamp without time zone",
    "message jsonb",
    "lock_expires_at timestamp without time zone",
}


DeadPayload = Literal["archive", "message"]


class Installed(NamedTuple):
    version: int
    did: str  # installed, adopted, updated, nothing


def version(connection: Connection) -> int | None:
    """The version of the engine's tables here, or None if there are none."""
    if not connection.value(_sql().is_ours()):
        return None
    found: int = connection.value(_sql().version())
    return found


def install(
    connection: Connection,
    *,
    adopt: bool = False,
    warn: Callable[[str], None] = log.warning,
    dead_payload: DeadPayload | None = None,
) -> Installed:
    """Create what is missing, in one transaction. Raises SchemaRefused, and database errors.

    With ``adopt``, an archive of the original gets our columns, after ``warn`` was called. ``dead_payload``: whose id
    NOTIFY ``dead_message`` carries from now on; None: unchanged.
    """
    with connection.transaction():
        connection.run(_sql().lock())
        did = _install(connection, adopt, warn)
        if dead_payload:
            _tell_dead(connection, dead_payload)
    return Installed(VERSION, did)


def _install(connection: Connection, adopt: bool, warn: Callable[[str], None]) -> str:
    facts = connection.one(_sql().facts())
    if facts.is_ours:  # type: ignore[union-attr]
        return _already(connection, connection.value(_sql().version()))
    refuse_foreign(facts)
    if _original(facts):
        _adopt(facts, adopt, warn)
    _create(connection, facts)
    return "adopted" if _original(facts) else "installed"


def _tell_dead(connection: Connection, payload: DeadPayload) -> None:
    sql = _sql()
    connection.run(sql.tell_dead(payload=sql.message_payload if payload == "message" else sql.archive_payload))


def _adopt(facts: Any, asked: bool, warn: Callable[[str], None]) -> None:
    rewrites = f"rewrites messages.message_archive ({facts.archive_bytes / 1_000_000:,.1f} MB) under an exclusive lock"
    if asked:
        return warn(f"Adopting {rewrites}: nothing is archived until it is done.")
    raise SchemaAdoptable(
        "Nothing was changed: schema messages holds the tables of oliverlambson/pgmq. They can be adopted, and its "
        f"clients go on working; but that {rewrites}, and nothing is archived meanwhile. "
        "In a quiet hour: manage.py engine_schema --adopt"
    )


def refuse_foreign(facts: Any) -> None:
    """Raises SchemaForeign."""
    if (facts.has_status and set(facts.labels or ()) != _STATUS) or _differs(facts):
        raise SchemaForeign(
            "Nothing was changed: messages.message, messages.message_archive or the type public.message_status is "
            "there already, and is neither ours nor that of oliverlambson/pgmq. Rename it, or use another database."
        )


def _differs(facts: Any) -> bool:
    archive, message = set(facts.archive_columns or ()), set(facts.message_columns or ())
    return (facts.has_archive and archive != _ARCHIVE) or (facts.has_message and message != _MESSAGE)


def _original(facts: Any) -> bool:
    return bool(facts.has_archive or facts.has_message)


def _already(connection: Connection, found: int) -> str:
    if found > VERSION:
        raise SchemaNewer(
            f"Nothing was changed: the engine's tables are of version {found}, this program knows {VERSION}. "
            "Update the program."
        )
    if found == VERSION:
        return "nothing"
    renamed = [name for name, until in _RENAMED.items() if found < until]
    for step in [*renamed, *_SINCE[found]]:
        connection.run(_step(step))
    connection.run(_sql().raise_version(), {"version": VERSION})
    return "updated"


def script() -> str:
    """The statements of ``install`` for an empty database, for psql: one transaction."""
    statements = [_sql().lock(), *_statements(skipped={"take_over"}), _sql().mark_version()]
    texts = [each.as_string(None).replace("%(version)s", str(VERSION)).replace("%%", "%") for each in statements]
    return "\n".join([_HEAD, "begin;\n", *(f"{text.rstrip(';')};\n" for text in texts), "commit;\n"])


def _create(connection: Connection, facts: Any) -> None:
    skipped = {"create_status"} if facts.has_status else set()
    for statement in _statements(skipped | (set() if facts.has_archive else {"take_over"})):
        connection.run(statement)
    connection.run(_sql().mark_version(), {"version": VERSION})


def _statements(skipped: set[str]) -> list[Any]:
    steps = [
        "create_schema", "create_status", "create_original", "add_columns", "take_over", "number", "create_ours",
        "create_readers", "add_tokens", "tell_dead", "create_triggers", *_SINCE_3,
    ]  # fmt: skip
    return [_step(step) for step in steps if step not in skipped]


def _step(name: str) -> Any:
    return getattr(_sql(), name)(payload=_sql().archive_payload, **foreign_code.parts(foreign_code.INSERT))


def _sql() -> Any:
    return postgresql().schema
