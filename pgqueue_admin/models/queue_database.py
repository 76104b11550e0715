"""How Django's side reaches the queue database: a source is a DSN, its dialect and the schemas allowed."""

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import Error, connections

from pgqueue_admin.dialects import Address, Connection, Dialect, Pool, dialect_for
from pgqueue_admin.dialects.postgresql.connect_options import LOCK_SECONDS, LOOK_SECONDS, address
from pgqueue_admin.dialects.postgresql.session import translated
from pgqueue_admin.models import session_shares
from pgqueue_admin.models.session_shares import SEARCH

_READS: dict[str, Any] = {
    "application_name": "pgqueue-admin reads",
    "read_only": True,
    "statement_timeout": LOOK_SECONDS,
    "lock_timeout": LOCK_SECONDS,
}
_SESSIONS = 8
_OF_A_PERSON, _OF_A_QUEUE, _SEARCHES = 4, 2, 3  # at most, of those
# A chunk may move large bodies; but on a table that somebody has locked it holds up nobody who wants the rows it has.
_ACTS: dict[str, Any] = {"application_name": "pgqueue-admin acts", "statement_timeout": 300.0, "lock_timeout": 5.0}


@dataclass(frozen=True)
class QueueDatabase:
    dsn: str
    schemas: tuple[str, ...]
    is_ours: bool  # the embedded database; otherwise given by URL, and somebody's production
    dialect: Dialect = field(compare=False)
    _reading: Pool = field(compare=False, repr=False)
    _writing: Pool = field(compare=False, repr=False)
    _probing: Pool = field(compare=False, repr=False)
    _shares: session_shares.Shares = field(compare=False, repr=False)

    @property
    def default_schema(self) -> str:
        return self.schemas[0] if self.schemas else self.dialect.default_schema

    def allows(self, address: Address) -> bool:
        """Only these schemas are looked into and written to, whatever a path or a header says."""
        return address.schema in self.schemas

    @contextmanager
    def reading(self, of: Address | None = None, *, searching: bool = False) -> Iterator[Connection]:
        """Borrow a session that can only read, and a statement never longer than LOOK_SECONDS. Raises DatabaseDown.

        ``of``: the queue that is to be looked into. A queue and a person have so many at most; beyond them: Busy.
        ``searching``: texts are to be read row by row, for which a person has one, and all together a few.
        The console's own session is given back before, where it is of a pool: others need it while this one waits.
        """
        _give_back()
        most: dict[Hashable, int] = {of: _OF_A_QUEUE} if of else {}
        if (who := session_shares.person.get()) is not None:
            most["person", who] = _OF_A_PERSON
        if searching:
            most |= {"searches": _SEARCHES, (SEARCH, who): 1}
        with self._shares.of(most), self._reading.connection() as session:
            yield session

    def probing(self) -> AbstractContextManager[Connection]:
        """As ``reading``, to ask whether the database answers, and who holds a lock, however many look and wait."""
        return self._probing.connection()

    def writing(self, answer_seconds: float | None = None) -> AbstractContextManager[Connection]:
        """Borrow a session for an act. ``answer_seconds``: for one that is short. Raises DatabaseDown."""
        return self._writing.connection(answer_seconds)

    def close(self) -> None:
        self._reading.close()
        self._writing.close()
        self._probing.close()


def queue_database() -> QueueDatabase:
    """The source of the ``queues`` alias as it stands now."""
    return _source(_dsn(connections["queues"].settings_dict), tuple(settings.PGQUEUE["SCHEMAS"]))


@contextmanager
def through_django() -> Iterator[None]:
    """What Django is refused on the ``queues`` alias raises DatabaseError, as ``reading`` does: Django's own errors
    do not say of which database they are, and would be taken for an outage of the console's."""
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
    """The DSN of the console's own database, for whoever listens there."""
    return _dsn(connections["default"].settings_dict)


def close() -> None:
    """Close the sessions that are kept open (tests; before a fork)."""
    for made in _made:
        made.close()
    _made.clear()
    _source.cache_clear()


_made: list[QueueDatabase] = []


@lru_cache(maxsize=8)
def _source(dsn: str, schemas: tuple[str, ...]) -> QueueDatabase:
    dialect = dialect_for(dsn)
    answer: float = settings.PGQUEUE["ANSWER_SECONDS"]
    probes = {**_READS, "application_name": "pgqueue-admin probes"}
    made = QueueDatabase(
        dsn,
        schemas,
        settings.PGQUEUE["EMBEDDED"],
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
    return address({key: value for key, value in said.items() if isinstance(value, str | int)})
