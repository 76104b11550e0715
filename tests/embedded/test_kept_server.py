"""With PGQUEUE_TEST_KEEP the next run reuses the templates, and finds nothing else of an earlier run."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests import server_location
from tests.databases import Databases
from tests.kept_server import PREFIX, kept_server

CONF = {"fsync": "off", "shared_buffers": "16MB"}
THERE = "select oid from pg_database where datname = 'template_engine'"
LEFT = """
select datname from pg_database where datname in ('test_1', 'of_a_test')
union all select rolname from pg_roles where rolname = 'of_a_test'
"""


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a server apart from the one that other runs of this checkout keep."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER", f"tried-{os.getpid()}")
    yield
    for folder in server_location.folder().glob(f"{PREFIX}*-tried-{os.getpid()}"):
        shutil.rmtree(folder)


def run(server: PostgreSQL, blocker: Any) -> Any:
    """Act as a test run: clone a template and leave things behind. Return which template was used."""
    databases = Databases(server, blocker)
    with databases.clone("engine"):
        pass
    databases.close()
    with postgresql().connect(server.dsn()) as admin:
        admin.run("create database of_a_test")
        admin.run("create role of_a_test")
        return admin.value(THERE)


def seen(server: PostgreSQL) -> tuple[Any, list[Any]]:
    with postgresql().connect(server.dsn()) as admin:
        return admin.value(THERE), admin.all(LEFT)


def test_the_next_run_has_the_templates_and_nothing_else(django_db_blocker: Any) -> None:
    with kept_server(CONF) as server:
        made = run(server, django_db_blocker)
    with kept_server(CONF) as server:
        assert seen(server) == (made, [])
        assert run(server, django_db_blocker) == made


def test_concurrent_run_is_refused() -> None:
    with kept_server(CONF), pytest.raises(pytest.UsageError, match="Another run has"), kept_server(CONF):
        pass


def test_templates_of_a_killed_run_are_rebuilt(django_db_blocker: Any) -> None:
    with kept_server(CONF) as server:
        run(server, django_db_blocker)
    (ended,) = server_location.folder().glob(f"{PREFIX}*-tried-{os.getpid()}/ended")
    ended.unlink()
    with kept_server(CONF) as server:
        assert seen(server) == (None, [])
