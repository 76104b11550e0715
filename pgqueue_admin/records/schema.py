"""The schema of the console's own tables: who else may create there could have code of theirs run by our statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections, transaction

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records.asking import rows_of, run

NAME = "pgqueue_console"
# PostgreSQL prefers an exact match of argument types to the place in the path: behind ours nobody's else may stand.
PATH = f"pg_catalog, {NAME}, pg_temp"
PATHS = {"default": PATH, "queues": "pg_catalog, pg_temp"}  # of Django's sessions, by their alias
_MAKING = f"{NAME}, pg_catalog, pg_temp"  # what is made comes to be in the first
_LEDGER = "django_migrations"


class NotReady(Exception):
    """The console's own tables cannot be made; says why, and the statement that somebody has to run."""


class Standing(NamedTuple):
    role: str
    there: bool
    owner: str | None
    owner_is_a_stranger: bool
    may_create: bool


class Creator(NamedTuple):
    """Somebody who may create in a schema; without a name everybody may."""

    schema: str
    name: str | None

    @property
    def cure(self) -> str:
        console = postgresql().console
        if self.name is None:
            return written(console.keep_all_out(schema=self.schema))
        return written(console.keep_out(schema=self.schema, who=self.name))


@contextmanager
def for_migrating() -> Iterator[int]:
    """The schema is there and ours alone, tables are made in it, and what an earlier version kept in ``public`` is
    moved there: as many tables as this gives. Raises NotReady.
    """
    try:
        _make()
        rows_of(postgresql().console.set_path(), {"path": _MAKING})
        with transaction.atomic():
            moved = _move()
        yield moved
    finally:
        connections[DEFAULT_DB_ALIAS].close()  # the next session has the path of all others


def _make() -> None:
    console, now = postgresql().console, _standing()
    if not now.there:
        try:
            run(console.create_schema(schema=NAME))
        except ProgrammingError as error:
            raise NotReady(
                f"The role {now.role} may not make the schema of the console's own tables ({_line(error)}). "
                f"Have an administrator run: {written(console.schema_for(schema=NAME, role=now.role))}"
            ) from error
    elif now.owner_is_a_stranger or not now.may_create:
        raise NotReady(
            f"The schema {NAME} is owned by {now.owner}, and the console's own tables belong to the role {now.role} "
            f"alone. Have an administrator run: {written(console.own_schema(schema=NAME, role=now.role))}"
        )
    for other in creators([NAME]):
        raise NotReady(
            f"In the schema {NAME} {other.name or 'everybody'} may create, whose code the console's statements would "
            f"run. Have its owner run: {other.cure}"
        )


def creators(schemas: list[str]) -> list[Creator]:
    """Of the console's database: who else may create in these."""
    return [Creator(*row) for row in rows_of(postgresql().console.creators(), {"schemas": schemas})]


def _standing() -> Standing:
    return Standing(*rows_of(postgresql().console.standing(), {"schema": NAME})[0])


def _move() -> int:
    if _has_ledger(NAME) or not _has_ledger("public"):
        return 0
    migrated = {app for (app,) in rows_of(postgresql().console.apps_before())}
    if "pgqueue" not in migrated:
        return 0
    if others := migrated - {each.label for each in apps.get_app_configs()}:
        raise NotReady(
            f"The console's tables of an earlier version are in the schema public, in one ledger ({_LEDGER}) with "
            f"tables of {', '.join(sorted(others))}, which are not installed here. Give the console "
            "a database of its own."
        )
    tables = [_LEDGER, *connections[DEFAULT_DB_ALIAS].introspection.django_table_names()]
    for table in tables:
        run(postgresql().console.move(table=table, schema=NAME))
    return len(tables)


def _has_ledger(schema: str) -> bool:
    return bool(rows_of(postgresql().console.has_ledger(), {"schema": schema})[0][0])


def written(query: Any) -> str:
    """A statement as an administrator runs it."""
    return f"{postgresql().written(query)};"


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]
