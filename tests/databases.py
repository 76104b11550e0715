"""Template databases, made once in a run, or for several where its server is kept, and cloned per test."""

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import environ
from django.core.management import call_command
from django.db import connections

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import queue_database as source


class Databases:
    """``clone(kind)``: a database of that kind which lives as long as the ``with`` block."""

    def __init__(self, server: PostgreSQL, blocker: Any):
        self._server, self._blocker = server, blocker
        self._admin: Connection = postgresql().connect(server.dsn("postgres"))
        self._can_copy_files = self._admin.raw.info.server_version >= 150_000
        self._templates: set[str] = set()
        self._ended: list[str] = []
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self._admin.close()

    def prepare(self) -> None:
        """Make the templates that many tests clone."""
        for kind in _COMMON:
            self._make_template(kind)

    @contextmanager
    def clone(self, kind: str) -> Iterator[str]:
        self._make_template(kind)
        with self.copy(f"template_{kind}") as dsn:
            yield dsn

    @contextmanager
    def copy(self, source: str) -> Iterator[str]:
        """As ``clone``, of the database with this name, to which nobody may be connected."""
        name = f"test_{next(self._numbers)}"
        self._create(name, source)
        try:
            yield self._server.dsn(name)
        finally:
            self._done_with(name)

    def _done_with(self, name: str) -> None:
        """Dropped with the next one: the server waits a tenth of a second for sessions that are just ending."""
        self._ended.append(name)
        if len(self._ended) > 1:
            self._drop(self._ended.pop(0))

    def _drop(self, name: str) -> None:
        self._admin.run(f"drop database if exists {name} with (force)")

    @contextmanager
    def as_django(self, dsn: str, aliases: tuple[str, ...] = ("default", "queues")) -> Iterator[None]:
        """Point both of Django's aliases, or these, at ``dsn``, for this process."""
        before = {alias: dict(connections[alias].settings_dict) for alias in aliases}
        entry = environ.Env.db_url_config(dsn)
        with self._blocker.unblock():
            _point({alias: entry for alias in before})
            try:
                yield
            finally:
                source.close()
                _point(before)

    def _make_template(self, kind: str) -> None:
        if kind in self._templates:
            return
        name = f"template_{kind}"
        if self._admin.value(_MADE_OF, {"name": name}) != made_of():
            self._drop(name)  # made of something else, or its making failed
            self._create(name, f"template_{_BUILT_ON[kind]}" if self._made_base(kind) else "template1")
            with self._blocker.unblock():
                _MAKERS[kind](self._server.dsn(name))
            self._admin.run(f"comment on database {name} is '{made_of()}'")
        self._templates.add(kind)

    def _made_base(self, kind: str) -> bool:
        if kind not in _BUILT_ON:
            return False
        self._make_template(_BUILT_ON[kind])
        return True

    def _create(self, name: str, template: str) -> None:
        files = (
            " strategy file_copy" if self._can_copy_files else ""
        )  # the recorded shop is quicker to copy than to log
        self._admin.run(f"create database {name} template {template}{files}")


@cache
def made_of() -> str:
    """A digest of what decides what is in a template."""
    folders = (_ROOT / place for place in _SOURCES)
    files = [Path(__file__), *sorted(path for each in folders for path in each.rglob("*.*") if path.suffix != ".pyc")]
    read = hashlib.sha256()
    for path in filter(Path.is_file, files):
        read.update(f"{path.relative_to(_ROOT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return read.hexdigest()


def _point(entries: dict[str, dict[str, Any]]) -> None:
    for alias, entry in entries.items():
        connections[alias].close()
        where = {name: value for name, value in entry.items() if name != "ENGINE"}  # that stays the product's own
        connections[alias].settings_dict.update(where)


def _empty(dsn: str) -> None:
    pass


def _engine(dsn: str) -> None:
    from pgqueue_admin.archive import schema

    with postgresql().connect(dsn) as connection:
        schema.install(connection)


def _recorded(dsn: str) -> None:
    from pgqueue_admin.demo import restore_recording

    with postgresql().connect(dsn) as connection:
        restore_recording.restore(connection)


def _shortened(dsn: str) -> None:
    """The recorded shop without most messages of Sales and audit: most of what clones would copy and delete again.

    Sales stays the longest queue, with all that is large in it, and each conversation stays whole in which one died.
    """
    _recorded(dsn)
    with postgresql().connect(dsn, for_handlers=True) as connection:
        connection.run(
            """delete from "Sales" where seq > (select min(seq) + 3000 from "Sales") and octet_length(body) < 10000"""
        )
        connection.run(
            f"delete from audit where {_CONVERSATION} not in"
            f" (select {_CONVERSATION} from error where {_CONVERSATION} is not null)"
        )
        connection.run('vacuum (full, analyze) "Sales", audit')


_CONVERSATION = """substring(headers from '"NServiceBus.ConversationId":"([^"]*)"')"""


def _migrated(dsn: str) -> None:
    before = {"default": dict(connections["default"].settings_dict)}
    _point({"default": environ.Env.db_url_config(dsn)})
    try:
        call_command("migrate", database="default", verbosity=0)
    finally:
        _point(before)


def _ingested(dsn: str) -> None:
    """The first four hundred failures, as tests of pages want them."""
    from pgqueue_admin.archive.ingester import ingest

    with postgresql().connect(dsn) as connection:
        ingest(connection, Address("public", "error"), limit=400)


def _archived(dsn: str) -> None:
    from pgqueue_admin.archive.ingester import ingest

    with postgresql().connect(dsn) as connection:
        while ingest(connection, Address("public", "error"), 1000).full:
            pass
        connection.run("vacuum public.error")
        connection.run("analyze messages.message_archive")


def _whole(dsn: str) -> None:
    _recorded(dsn)
    _archived(dsn)


_ROOT = Path(__file__).resolve().parents[1]
_SOURCES = (
    "pgqueue_admin/archive",
    "pgqueue_admin/demo",
    "pgqueue_admin/dialects/postgresql",
    "pgqueue_admin/formatting",
    "pgqueue_admin/migrations",
)
_MADE_OF = "select shobj_description(oid, 'pg_database') from pg_database where datname = %(name)s"
_MAKERS = {
    "empty": _empty,
    "engine": _engine,
    "recorded": _recorded,
    "console": _migrated,
    "recorded_console": _shortened,
    "ingested_console": _ingested,
    "archived_console": _archived,
    "whole_archived_console": _whole,
}
_COMMON = ("engine", "ingested_console", "archived_console")
# The console's migrations cost more than the recorded shop: they are run once.
_BUILT_ON = {
    "recorded": "engine",
    "console": "engine",
    "recorded_console": "console",
    "ingested_console": "recorded_console",
    "archived_console": "recorded_console",
    "whole_archived_console": "console",
}
