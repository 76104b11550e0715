"""Prepared transactions that nobody ends: warned of with what they lock and who waits, until somebody ends them."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from django.db import connections

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.outboxes import InDoubtWatch
from pgqueue_admin.monitor import in_doubt
from tests.alerts.test_kinds import look
from tests.waiting import until

KIND = BY_NAME["transaction_in_doubt"]


@pytest.fixture
def gid(console_database: str) -> Iterator[str]:
    """Of one that has written to a table of the queues' database."""
    name = f"pgqueue_{uuid4().hex}_{uuid4().hex}_stock"
    with psycopg.connect(console_database, autocommit=True) as session:
        session.execute("create table stock (number int primary key)")
        session.execute("begin")
        session.execute("insert into stock values (7)")
        session.execute(f"prepare transaction '{name}'")
        yield name
        if session.execute("select 1 from pg_prepared_xacts where gid = %s", [name]).fetchone():
            session.execute(f"rollback prepared '{name}'")


def found(name: str) -> list[Finding]:
    """Of this one: the server is shared."""
    seen = InDoubtWatch().newest() or []
    return list(KIND.find(look(in_doubt=[each for each in seen if each.name == name])))


def test_one_that_is_just_being_ended_is_none(gid: str) -> None:
    assert found(gid) == []


def test_one_that_nobody_ends_is_told_until_somebody_does(
    gid: str, console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_doubt, "LATE", timedelta(0))
    (told,) = found(gid)
    assert told.severity == "warning"
    assert told.said.fact.startswith("Prepared and not ended: 1 transaction, the oldest for ")
    assert "They lock rows of public.stock. The recovery" in told.said.meaning
    with psycopg.connect(console_database, autocommit=True) as session:
        session.execute(f"commit prepared '{gid}'")
    assert found(gid) == []


def test_who_waits_behind_it_makes_it_critical(
    gid: str, console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_doubt, "LATE", timedelta(0))
    with closing(psycopg.connect(console_database, autocommit=True)) as session:
        session.pgconn.send_query(b"insert into stock values (7)")
        until(lambda: found(gid)[0].severity == "critical")
        assert "1 session waits behind them." in found(gid)[0].said.meaning


def test_a_database_that_is_away_ends_no_warning(console_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert InDoubtWatch().newest() is None
    assert not KIND.can_tell(look(in_doubt=None))
    assert KIND.can_tell(look(in_doubt=[]))
