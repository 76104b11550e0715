"""What lets other users of a database have code of theirs run by the console, or makes that worse."""

import time
from collections.abc import Iterable, Iterator

import django.db

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.opening import said_by
from pgqueue_admin.records import schema
from pgqueue_admin.records.asking import rows_of
from pgqueue_admin.records.schema import Creator
from pgqueue_admin.records.source import console_dsn, source
from pgqueue_admin.wording import warnings

KIND = "database_exposed"
EVERY = 60.0  # seconds between two looks: rights change seldom
CATALOG = "pg_catalog"
_PLACE = ("host", "port", "dbname", "user")


class Exposure:
    """As it was at the last look; None until one was answered."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._found: list[Found] | None = None

    def found(self) -> list[Found] | None:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + EVERY
            try:
                self._found = [*of_console(), *of_queues()]
            except (DatabaseError, django.db.Error):
                self._found = None
        return self._found


def of_console() -> Iterator[Found]:
    """Raises django.db.Error."""
    console = postgresql().console
    role = rows_of(console.role())[0]
    yield from _judged("DATABASE_URL", role, schema.creators([CATALOG, schema.NAME]))


def of_queues() -> Iterator[Found]:
    """Nothing where role and database are the console's, of which it was said. Raises DatabaseError."""
    here, there = said_by(console_dsn()), said_by(source().dsn)
    if all(here.get(name) == there.get(name) for name in _PLACE):
        return
    console = postgresql().console
    with source().reading() as session:
        role = session.one(console.role())
        creators = [Creator(*row) for row in session.all(console.creators(), {"schemas": [CATALOG]})]
    assert role is not None
    yield from _judged("QUEUES_URL", role, creators)


def open_schemas() -> list[Creator]:
    """Where everybody may create, of those with queues. Raises DatabaseError."""
    with source().reading() as session:
        rows = session.all(postgresql().console.creators(), {"schemas": list(source().schemas)})
    return [creator for creator in map(Creator._make, rows) if creator.name is None]


def _judged(url: str, role: Iterable[object], creators: list[Creator]) -> Iterator[Found]:
    name, is_superuser, made_cluster = role
    if is_superuser:
        cure = "" if made_cluster else schema.written(postgresql().console.demote(role=str(name)))
        yield Found(KIND, url, warnings.superuser(url, str(name), cure), cause="superuser")
    for each in creators:
        said = warnings.others_create(url, str(name), each.name, each.schema, each.cure)
        yield Found(KIND, url, said, cause=f"{each.schema} {each.name or ''}".strip())
