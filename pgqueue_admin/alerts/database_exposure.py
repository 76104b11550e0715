"""Finds what lets other database users run their code as the console, or makes that worse."""

from collections.abc import Iterable, Iterator
from typing import Any

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.periodic_looks import PeriodicLook
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import search_paths
from pgqueue_admin.dialects.postgresql.connect_options import said_by
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models import Endpoint, schema
from pgqueue_admin.models.queue_database import console_dsn, looked_at, queue_database
from pgqueue_admin.models.raw_sql import console_sql, rows_of
from pgqueue_admin.models.schema import SchemaCreator

KIND = "database_exposed"
EVERY = 60.0  # seconds between two checks: rights change rarely
CATALOG = "pg_catalog"
_PLACE = ("host", "port", "dbname", "user")


class Exposure(PeriodicLook[list[Finding]]):
    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[Finding]:
        return [*of_console(), *of_queues(), *of_handlers(), *of_looked_at()]


def of_console() -> Iterator[Finding]:
    """Judge DATABASE_URL. Raises django.db.Error."""
    console = console_sql.console_schema
    role = rows_of(console.role())[0]
    yield from _judged("DATABASE_URL", role, schema.creators([CATALOG, search_paths.CONSOLE_SCHEMA]))


def of_queues() -> Iterator[Finding]:
    """Judge QUEUES_URL, unless role and database are the console's, which are judged already. Raises DatabaseError."""
    here, there = said_by(console_dsn()), said_by(queue_database().dsn)
    if all(here.get(name) == there.get(name) for name in _PLACE):
        return
    console = console_sql.console_schema
    with queue_database().read_session() as session:
        role = session.one(console.role())
        creators = [SchemaCreator(*row) for row in session.all(console.creators(), {"schemas": [CATALOG]})]
    assert role is not None
    yield from _judged("QUEUES_URL", role, creators)


def of_looked_at() -> Iterator[Finding]:
    """Judge watched databases; skip those that are down, which their queues report. Objects made there harm nobody
    here.
    """
    for database in (each for each in looked_at() if each.dialect.lists_roles):
        try:
            with database.read_session() as session:
                role = session.all(console_sql.console_schema.role())[0]
        except DatabaseError:
            continue
        yield from _judged(f"QUEUES_URL_{database.alias.upper()}", role, [])


def of_handlers() -> Iterator[Finding]:
    """Judge the search paths of our handlers' sessions, which URL, role or database may set. Raises DatabaseError and
    django.db.Error.
    """
    if Endpoint.objects.filter(ours=True).exists():
        for each in on_path():
            whose = "Sessions of handlers"
            said = warnings.others_create("QUEUES_URL", _role(), each.name, each.schema, each.cure, whose)
            yield Finding(KIND, "QUEUES_URL", said, cause=f"path {each.schema} {each.name or ''}".strip())


def open_schemas() -> list[SchemaCreator]:
    """Return schemas in which others may create: those with queues, if everybody may, and those on the search path of
    handlers' sessions. Raises DatabaseError.
    """
    with queue_database().read_session() as session:
        asked = {"schemas": list(queue_database().schemas)}
        rows = session.all(console_sql.console_schema.granted(), asked)
    everybody = [creator for creator in map(SchemaCreator._make, rows) if creator.name is None]
    return list(dict.fromkeys([*everybody, *on_path()]))


def on_path() -> list[SchemaCreator]:
    """Return who else may create on the search path of handlers' sessions. ``pg_catalog``, on every path, is left out.
    Raises DatabaseError.
    """
    of = queue_database()
    named: dict[str, Any] = {"application_name": "pgqueue-admin alerts", "fail_fast": True, "statement_timeout": 5.0}
    with of.dialect.connect(of.dsn, for_handlers=True, **named) as session:
        path = [each for each in session.value(console_sql.console_schema.path()) if each != CATALOG]
    with of.read_session() as session:
        return [SchemaCreator(*row) for row in session.all(console_sql.console_schema.granted(), {"schemas": path})]


def _role() -> str:
    with queue_database().read_session() as session:
        return str(session.all(console_sql.console_schema.role())[0][0])


def _judged(url: str, role: Iterable[object], creators: list[SchemaCreator]) -> Iterator[Finding]:
    name, is_superuser, made_cluster = role
    if is_superuser:
        cure = "" if made_cluster else schema.written(console_sql.console_schema.demote(role=str(name)))
        yield Finding(KIND, url, warnings.superuser(url, str(name), cure), cause="superuser")
    for each in creators:
        said = warnings.others_create(url, str(name), each.name, each.schema, each.cure)
        yield Finding(KIND, url, said, cause=f"{each.schema} {each.name or ''}".strip())
