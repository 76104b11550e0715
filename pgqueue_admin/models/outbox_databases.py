"""Databases beside the queues' that may hold outboxes, or join multi-database transactions: by alias."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseError, TableMissing
from pgqueue_admin.models import queue_database
from pgqueue_admin.models.queue_database import QueueDatabase


class OutboxDatabase(NamedTuple):
    """Read-only from here. ``of`` is None if it cannot be queried at all; ``blocking_reason`` says why."""

    alias: str
    of: QueueDatabase | None
    blocking_reason: str = ""

    @contextmanager
    def read_session(self, table: Address | None = None) -> Iterator[Connection]:
        """As ``QueueDatabase.read_session``. Raises DatabaseError."""
        if self.of is None:
            raise TableMissing(self.blocking_reason)
        with self.of.read_session(table) as session:
            yield session

    @property
    def schemas(self) -> list[str]:
        """Schemas that may be read; empty: all. Only databases monitored for their queues have a list."""
        return list(self.of.schemas) if self.of else []

    @property
    def key(self) -> str:
        """Key for what is kept about it: an alias belongs to one database for ever."""
        return f"outbox database {self.alias}"


def elsewhere() -> list[OutboxDatabase]:
    """Databases that handlers enlist, by name; then databases monitored for their queues, unless already listed."""
    enlisted: dict[str, str] = settings.PGQUEUE["OUTBOX_DATABASES"]
    found = [_enlisted(alias, url) for alias, url in enlisted.items()]
    return found + [_looked_at(of, enlisted.get(of.alias)) for of in queue_database.looked_at() if _is_new(of)]


def of_table(address: Address) -> OutboxDatabase | None:
    """The database of this table, by the alias in its schema; None: the queues' database, or unknown."""
    alias = database_alias.alias_of(address)
    return next((each for each in elsewhere() if alias and each.alias == alias and each.of), None)


def _is_new(of: QueueDatabase) -> bool:
    return of.dsn not in settings.PGQUEUE["OUTBOX_DATABASES"].values()


def _enlisted(alias: str, url: str) -> OutboxDatabase:
    if not database_alias.ALIAS.fullmatch(alias):
        return OutboxDatabase(alias, None, "its name is no alias: a letter, then at most 29 letters, digits and _")
    try:
        of = queue_database.only_looked_into(url, alias)
    except (ValueError, DatabaseError) as error:  # the URL is malformed, or its driver is not installed
        return OutboxDatabase(alias, None, str(error))
    return _readable(OutboxDatabase(alias, of))


def _looked_at(of: QueueDatabase, enlisted: str | None) -> OutboxDatabase:
    if enlisted:
        why = f"PGQUEUE_OUTBOX_URL_{of.alias.upper()} is another database of the same name: give it another one"
        return OutboxDatabase(of.alias, None, why)
    return _readable(OutboxDatabase(of.alias, of))


def _readable(found: OutboxDatabase) -> OutboxDatabase:
    if found.of and not found.of.dialect.shows_outboxes:
        return OutboxDatabase(found.alias, None, f"outboxes on {found.of.dialect.name} are not looked into from here")
    return found
