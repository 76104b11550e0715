"""The schema of the console's own tables: another role that may create in it could have our statements run its code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections
from django.db.migrations.loader import MigrationLoader

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.search_paths import CONSOLE_SCHEMA
from pgqueue_admin.models.raw_sql import console_sql, rows_of, run

_MAKING = f"{CONSOLE_SCHEMA}, pg_catalog, pg_temp"  # new objects are created in the first
_APP = "pgqueue"


class NotReady(Exception):
    """The console's own tables cannot be created; says why, and the statement that an administrator must run."""


class SchemaStanding(NamedTuple):
    role: str
    there: bool
    owner: str | None
    owner_is_a_stranger: bool
    may_create: bool


class SchemaCreator(NamedTuple):
    """A role that may create in a schema; without a name: every role."""

    schema: str
    name: str | None

    @property
    def cure(self) -> str:
        console = console_sql.console_schema
        if self.name is None:
            return written(console.keep_all_out(schema=self.schema))
        return written(console.keep_out(schema=self.schema, who=self.name))


@contextmanager
def for_migrating() -> Iterator[None]:
    """Ensure that the schema exists and is ours alone; create tables in it inside the block. Raises NotReady."""
    try:
        _make()
        _refuse_earlier()
        rows_of(console_sql.console_schema.set_path(), {"path": _MAKING})
        yield
    finally:
        connections[DEFAULT_DB_ALIAS].close()  # the next session has the usual search_path


def _make() -> None:
    console, now = console_sql.console_schema, _standing()
    if not now.there:
        try:
            run(console.create_schema(schema=CONSOLE_SCHEMA))
        except ProgrammingError as error:
            raise NotReady(
                f"The role {now.role} may not make the schema of the console's own tables ({_line(error)}). "
                f"Have an administrator run: {written(console.schema_for(schema=CONSOLE_SCHEMA, role=now.role))}"
            ) from error
    elif now.owner_is_a_stranger or not now.may_create:
        raise NotReady(
            f"The schema {CONSOLE_SCHEMA} is owned by {now.owner}, "
            f"and the console's own tables belong to the role {now.role} alone. "
            f"Have an administrator run: {written(console.own_schema(schema=CONSOLE_SCHEMA, role=now.role))}"
        )
    for other in creators([CONSOLE_SCHEMA]):
        raise NotReady(
            f"In the schema {CONSOLE_SCHEMA} {other.name or 'everybody'} may create, "
            f"whose code the console's statements would run. Have its owner run: {other.cure}"
        )


def creators(schemas: list[str]) -> list[SchemaCreator]:
    """Other roles that may create in these schemas of the console's database."""
    return [SchemaCreator(*row) for row in rows_of(console_sql.console_schema.creators(), {"schemas": schemas})]


def _standing() -> SchemaStanding:
    return SchemaStanding(*rows_of(console_sql.console_schema.standing(), {"schema": CONSOLE_SCHEMA})[0])


def _refuse_earlier() -> None:
    """Refuse tables of unreleased versions, which had other migrations, at first in ``public``; none is read."""
    known = {name for app, name in MigrationLoader(None).disk_migrations if app == _APP}
    for schema in (CONSOLE_SCHEMA, "public"):
        if _has_ledger(schema) and _applied(schema) - known:
            raise NotReady(
                f"The console's own tables in the schema {schema} were made by a version before 0.1.0, which this one "
                "does not read. They hold samples, warnings and settings, and no messages. For the database of "
                f"`make run`: make reset. For one given by DATABASE_URL: {_drop(schema)}; then migrate again."
            )


def _applied(schema: str) -> set[str]:
    return {name for (name,) in rows_of(console_sql.console_schema.applied(schema=schema), {"app": _APP})}


def _drop(schema: str) -> str:
    return f"drop schema {schema} cascade" if schema == CONSOLE_SCHEMA else "give the console an empty database"


def _has_ledger(schema: str) -> bool:
    return bool(rows_of(console_sql.console_schema.has_ledger(), {"schema": schema})[0][0])


def written(query: Any) -> str:
    """The statement as text, for an administrator to run."""
    return f"{postgresql().written(query)};"


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]
