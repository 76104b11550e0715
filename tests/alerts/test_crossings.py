"""Transfers between two databases with an unknown outcome are warned of until it is known."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connections

from pgqueue_admin.alerts import periodic_looks
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.periodic_looks import CrossingWatch
from pgqueue_admin.archive import crossings, dead_messages
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import queue_database as queue_databases
from tests.alerts.test_kinds import look
from tests.billing import ORDERS, failed_there

KIND = BY_NAME["crossing_undecided"]


@pytest.fixture
def here(archived_console: str, connect: Callable[[str], Connection]) -> Iterator[Connection]:
    yield connect(archived_console)
    queue_databases.close()


def set_out(here: Connection, ids: list[int]) -> int:
    with crossings.all_let_go(here), here.transaction():
        crossings.put_back(here, {ORDERS: dead_messages.hold(here, ids)}, (), "ana", None, False)
        return max(each.id for each in crossings.open_ones(here))


def found() -> list[Finding]:
    return list(KIND.find(look(crossings=CrossingWatch().newest())))


def test_recent_crossing_is_no_warning(here: Connection) -> None:
    set_out(here, failed_there(3))
    assert found() == []


def test_late_crossing_warns_with_its_message_count(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_looks, "CROSSING_LATE", timedelta(0))
    crossing = set_out(here, failed_there(3))
    (told,) = found()
    assert (told.severity, told.subject) == ("warning", "billing")
    assert told.said.fact.startswith("Not known whether 3 messages arrived between the archive and billing, for ")
    assert "Mend the way to it" in told.said.meaning
    here.run("delete from messages.crossing where id = %(id)s", {"id": crossing})
    assert found() == []


def test_undecided_crossing_is_critical_until_decided(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_looks, "CROSSING_LATE", timedelta(0))
    first, *others = failed_there(3)
    undecided = set_out(here, [first])
    set_out(here, others)
    here.run("update messages.crossing set not_known = 'restored' where id = %(id)s", {"id": undecided})
    (told,) = found()
    assert told.severity == "critical"
    assert told.said.fact.startswith("Not known whether 1 message arrived")
    assert "decide on Crossings. Of 2 more billing is still asked." in told.said.meaning
    here.run("delete from messages.crossing where id = %(id)s", {"id": undecided})
    assert [each.severity for each in found()] == ["warning"]


def test_where_no_message_is_held_nobody_is_warned(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_looks, "CROSSING_LATE", timedelta(0))
    set_out(here, failed_there(3))
    here.run("update messages.crossing_put set why = 'it did not take it'")
    assert found() == []


def test_a_database_that_is_away_ends_no_warning(console_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert CrossingWatch().newest() is None
    assert not KIND.can_tell(look(crossings=None))
    assert KIND.can_tell(look(crossings=[]))


def test_engine_tables_of_a_version_before_have_none(here: Connection) -> None:
    here.run("drop table messages.crossing_copy, messages.crossing_put, messages.crossing")
    queue_databases.close()
    assert CrossingWatch().newest() == []
