"""Databases beside the queues' where outboxes may lie, and parts of transactions over several: by their aliases."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.dialects import Address, Connection, aliases
from pgqueue_admin.dialects.errors import DatabaseError, TableMissing
from pgqueue_admin.models import queue_database
from pgqueue_admin.models.queue_database import QueueDatabase


class OutboxDatabase(NamedTuple):
    """Only looked at from here. ``of``: None where it cannot be asked at all, and ``blocking_reason`` says why."""

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
        """Those that may be looked into; none: all. Only of what is looked at for its queues somebody has said it."""
        return list(self.of.schemas) if self.of else []

    @property
    def key(self) -> str:
        """Of what is remembered about it: an alias belongs to one database for ever."""
        return f"outbox database {self.alias}"


def elsewhere() -> list[OutboxDatabase]:
    """Those that handlers enlist, by name; then those whose queues are looked at, unless they are the same."""
    enlisted: dict[str, str] = settings.PGQUEUE["OUTBOX_DATABASES"]
    found = [_enlisted(alias, url) for alias, url in enlisted.items()]
    return found + [_looked_at(of, enlisted.get(of.alias)) for of in queue_database.looked_at() if _is_new(of)]


def of_table(address: Address) -> OutboxDatabase | None:
    """Where it lies, by the alias before its schema; None: beside the queues, or nowhere."""
    alias = aliases.alias_of(address)
    return next((each for each in elsewhere() if alias and each.alias == alias and each.of), None)


def _is_new(of: QueueDatabase) -> bool:
    return of.dsn not in settings.PGQUEUE["OUTBOX_DATABASES"].values()


def _enlisted(alias: str, url: str) -> OutboxDatabase:
    if not aliases.ALIAS.fullmatch(alias):
        return OutboxDatabase(alias, None, "its name is no alias: a letter, then at most 29 letters, digits and _")
    try:
        of = queue_database.only_looked_into(url, alias)
    except (ValueError, DatabaseError) as error:  # it cannot be read, or its driver is not installed here
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
