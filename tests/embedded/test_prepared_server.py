"""Runs of one CI begin with the same templates, and with nothing else that another left."""

from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.databases import Databases
from tests.prepared_server import VARIABLE, prepared_server

CONF = {"fsync": "off", "shared_buffers": "16MB"}
THERE = "select oid from pg_database where datname = 'template_engine'"
LEFT = "select count(*) from pg_database where datname = 'of_a_test'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Apart from that of the run which tries this."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "prepared"))
    return tmp_path / "prepared"


@pytest.fixture
def prepare(django_db_blocker: Any) -> Any:
    def prepare(server: PostgreSQL) -> None:
        prepare.times += 1  # type: ignore[attr-defined]
        databases = Databases(server, django_db_blocker)
        with databases.clone("engine"):
            pass
        databases.close()

    prepare.times = 0  # type: ignore[attr-defined]
    return prepare


def asked(server: PostgreSQL, statement: str) -> Any:
    with postgresql().connect(server.dsn()) as admin:
        return admin.value(statement)


def test_each_has_the_templates_and_nothing_of_another(prepare: Any) -> None:
    with prepared_server(CONF, prepare) as one, prepared_server(CONF, prepare) as other:
        assert asked(one, THERE) == asked(other, THERE) is not None
        with postgresql().connect(one.dsn()) as admin:
            admin.run("create database of_a_test")
        assert asked(other, LEFT) == 0
    with prepared_server(CONF, prepare) as next_one:
        assert asked(next_one, LEFT) == 0
    assert prepare.times == 1


def test_what_a_killed_process_had_begun_is_made_anew(prepare: Any, folder: Path) -> None:
    (folder / "half" / "data").mkdir(parents=True)
    with prepared_server(CONF, prepare) as server:
        assert asked(server, THERE)
