"""The databases with queues: each has a DSN, a dialect and the allowed schemas."""

import re
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import Error, connections
from django.db.models import QuerySet

from pgqueue_admin.dialects import Address, Connection, Dialect, Pool, dialect_for, visible_queues
from pgqueue_admin.dialects.errors import AddressUnreadable, EngineTablesOlder, TableChanged, TableMissing
from pgqueue_admin.dialects.postgresql.connect_options import LOCK_SECONDS, LOOK_SECONDS, address
from pgqueue_admin.dialects.postgresql.session import translated
from pgqueue_admin.models import Queue, search_turns, session_shares
from pgqueue_admin.models.session_shares import EXPORT, SEARCH

_READS: dict[str, Any] = {
    "application_name": "pgqueue-admin reads",
    "read_only": True,
    "statement_timeout": LOOK_SECONDS,
    "lock_timeout": LOCK_SECONDS,
}
_SESSIONS = 8
_OF_A_PERSON, _OF_A_QUEUE, _SEARCHES = 4, 2, 3  # limits on concurrent sessions
# A chunk may move large bodies. But if its table is locked, a short lock timeout frees the rows it has locked itself.
_ACTS: dict[str, Any] = {"application_name": "pgqueue-admin acts", "statement_timeout": 300.0, "lock_timeout": 5.0}
# columns renamed in versions 8 and 13 of the engine's tables; the console queries no other table for them
_NAMED_LAST = re.compile(
    r"\b(resolution|resolved_by|resolved_at|ingested_from|retry_blocked_reason|position|previous_actor|previous_at)\b"
)


@dataclass(frozen=True)
class QueueDatabase:
    dsn: str
    schemas: tuple[str, ...]
    is_ours: bool  # the embedded database; otherwise given by URL: production
    alias: str  # set for monitored databases beside the first; the first has none
    is_writable: bool  # acts may write here: with an alias, only crossings (services/operations/crossings)
    dialect: Dialect = field(compare=False)
    _read_pool: Pool = field(compare=False, repr=False)
    _write_pool: Pool = field(compare=False, repr=False)
    _probe_pool: Pool = field(compare=False, repr=False)
    _shares: session_shares.Shares = field(compare=False, repr=False)

    @property
    def default_schema(self) -> str:
        return self.schemas[0] if self.schemas else self.dialect.default_schema

    def allows(self, address: Address) -> bool:
        """Whether the schema may be read and written: only the listed ones, whatever a path or a header says."""
        try:
            return self.dialect.native(address).schema in self.schemas
        except AddressUnreadable:
            return False

    @contextmanager
    def read_session(self, of: Address | None = None, *, searching: bool = False) -> Iterator[Connection]:
        """Borrow a read-only session whose statements end after LOOK_SECONDS. Raises DatabaseDown.

        ``of``: the queue to be read. Sessions per queue and per person are limited; beyond the limit: Busy.
        ``searching``: the caller reads texts row by row. A person has one search at a time over all web processes; this
        process has a few at a time for all.

        Returns a pooled session on the console's own database first: others need it while this caller waits.
        """
        if of and (seen := visible_queues.current()) and not seen.sees(of):
            raise TableMissing("There is no such queue.")  # visible to this person
        _give_back()
        most: dict[Hashable, int] = {of: _OF_A_QUEUE} if of else {}
        if (who := session_shares.person.get()) is not None:
            most["person", who] = _OF_A_PERSON
        if searching:
            most |= {"searches": _SEARCHES, (SEARCH, who): 1}
        turn = search_turns.turn(who) if searching else nullcontext()
        with _told_if_older(), self._shares.of(most), turn, self._read_pool.connection() as session:
            yield session

    def exporting(self) -> AbstractContextManager[None]:
        """Hold this person's one export slot; an export holds no session between its reads. Raises Busy."""
        return self._shares.of({(EXPORT, session_shares.person.get()): 1})

    def probe_session(self) -> AbstractContextManager[Connection]:
        """As ``read_session``, from a separate pool: to check that the database answers, and who holds a lock."""
        return self._probe_pool.connection()

    @contextmanager
    def write_session(self, answer_seconds: float | None = None) -> Iterator[Connection]:
        """Borrow a session for an act. ``answer_seconds``: a shorter answer timeout. Raises DatabaseDown.

        Raises PermissionError if acts may not write to this database.
        """
        if not self.is_writable:
            raise PermissionError(f"The database {self.alias} is only looked at.")
        with _told_if_older(), self._write_pool.connection(answer_seconds) as session:
            yield session

    def close(self) -> None:
        self._read_pool.close()
        self._write_pool.close()
        self._probe_pool.close()


@contextmanager
def _told_if_older() -> Iterator[None]:
    """Turn a missing engine column into EngineTablesOlder. Not used where handlers run their own statements, whose
    tables may have such columns."""
    try:
        yield
    except TableChanged as error:
        if _NAMED_LAST.search(error.detail.partition("\n")[0]):
            raise EngineTablesOlder(error.detail, error.sqlstate) from error
        raise


def queue_database() -> QueueDatabase:
    """The first database, by the current settings of the ``queues`` alias: the one that is written to."""
    return _source(_dsn(connections["queues"].settings_dict), tuple(settings.PGQUEUE["SCHEMAS"]))


def looked_at() -> list[QueueDatabase]:
    """The monitored databases beside the first, by alias."""
    return [_of_alias(alias) for alias in _others()]


def of_alias(alias: str) -> QueueDatabase | None:
    """None if the environment names no such database (any more)."""
    return _of_alias(alias) if alias in _others() else None


def only_looked_into(dsn: str, alias: str) -> QueueDatabase:
    """A database without queues of ours. Raises ValueError if no dialect knows the URL."""
    return _source(dsn, (), alias)


def schemas_looked_at() -> list[str]:
    """Monitored schemas with their aliases, as pages name them."""
    return [of.dialect.address(schema, "").schema for of in looked_at() for schema in of.schemas]


def database_of(address: Address) -> QueueDatabase:
    """The database of this table: a schema of another database is prefixed by its alias."""
    alias, said, _ = address.schema.partition(":")
    return (of_alias(alias) if said else None) or queue_database()


def is_watched(address: Address) -> bool:
    """Whether its database allows its schema."""
    return database_of(address).allows(address)


def lies_elsewhere(address: Address) -> str:
    """Why an act within the first database cannot reach this table, as a sentence; "" if it can."""
    alias = database_of(address).alias
    within = f"It is in the database {alias}: this is done within the first one only."
    return (write_refusal(address) or within) if alias else ""


def write_refusal(address: Address) -> str:
    """Why nothing may be sent to a queue there, or taken out of its error queues, as a sentence; "" if it may."""
    database = database_of(address)
    return "" if database.is_writable else only_looked(database.alias)


def only_looked(alias: str) -> str:
    return f"Queues of the database {alias} are only looked at: nothing is sent, moved or retried there."


def sees_locked_rows(address: Address) -> bool:
    """Whether reading this table sees the rows that are in flight."""
    return database_of(address).dialect.sees_locked_rows


def queues_in(alias: str) -> QuerySet[Queue]:
    """The rows of one database's queues. Queues of a database no longer monitored count as the first's, and as gone."""
    if alias:
        return Queue.objects.filter(schema__startswith=f"{alias}:")
    found = Queue.objects.all()
    for each in _others():
        found = found.exclude(schema__startswith=f"{each}:")
    return found


def _of_alias(alias: str) -> QueueDatabase:
    said = _others()[alias]
    return _source(said["URL"], tuple(said["SCHEMAS"]), alias, bool(said.get("WRITABLE")))


def _others() -> dict[str, Any]:
    others: dict[str, Any] = settings.PGQUEUE["LOOKED_AT"]
    return others


@contextmanager
def through_django() -> Iterator[None]:
    """Turn Django's errors on the ``queues`` alias into DatabaseError, as ``read_session`` raises: Django's do not name
    their database, and would count as an outage of the console's own."""
    try:
        yield
    except Error as error:
        if connections["queues"].errors_occurred and error.__cause__:
            with translated:
                raise error.__cause__ from None
        raise


def _give_back() -> None:
    own = connections["default"]
    if own.connection is not None and getattr(own, "pool", None) and not own.in_atomic_block:
        own.close()


def console_dsn() -> str:
    """The DSN of the console's own database, for listeners."""
    return _dsn(connections["default"].settings_dict)


def close() -> None:
    """Close the pooled sessions (tests; before a fork)."""
    for made in _made:
        made.close()
    _made.clear()
    _source.cache_clear()


_made: list[QueueDatabase] = []


@lru_cache(maxsize=64)
def _source(dsn: str, schemas: tuple[str, ...], alias: str = "", is_writable: bool = False) -> QueueDatabase:
    dialect = dialect_for(dsn).aliased(alias)
    answer: float = settings.PGQUEUE["ANSWER_SECONDS"]
    probes = {**_READS, "application_name": "pgqueue-admin probes"}
    made = QueueDatabase(
        dsn,
        schemas,
        settings.PGQUEUE["EMBEDDED"] and not alias,
        alias,
        is_writable or not alias,
        dialect,
        dialect.pool(dsn, **_READS, answer_seconds=answer, max_size=_SESSIONS),
        dialect.pool(dsn, **_ACTS, answer_seconds=_ACTS["statement_timeout"] + answer),
        dialect.pool(dsn, **probes, answer_seconds=answer, max_size=1),
        session_shares.Shares(),
    )
    _made.append(made)
    return made


def _dsn(entry: dict[str, Any]) -> str:
    at = {"user": entry.get("USER"), "password": entry.get("PASSWORD"), "host": entry.get("HOST")}
    said = {**at, "port": entry.get("PORT"), "dbname": entry["NAME"], **entry.get("OPTIONS", {})}
    said["options"] = entry.get("URL_OPTIONS", said.get("options", ""))
    said["target_session_attrs"] = entry.get("URL_TARGET", said.get("target_session_attrs", ""))
    return _written(tuple((key, value) for key, value in said.items() if isinstance(value, str | int)))


@lru_cache(maxsize=64)
def _written(said: tuple[tuple[str, str | int], ...]) -> str:
    """Cached: every queue name on a page needs it."""
    return address(dict(said))
