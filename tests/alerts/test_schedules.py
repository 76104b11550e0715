"""Overdue schedules are warned of while nobody sends them and while the database refuses."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections

from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.periodic_looks import ScheduleWatch
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease.schedules import runner
from tests.alerts.test_kinds import look
from tests.lease.test_schedules import add, due

Connect = Callable[..., Connection]
KIND = BY_NAME["schedule_not_sent"]


@pytest.fixture
def session(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def said() -> dict[str, str]:
    """Findings by subject."""
    return {each.subject: each.sentence for each in KIND.find(look(unsent_schedules=ScheduleWatch().newest()))}


def test_overdue_schedule_warns_until_sent(session: Connection) -> None:
    schedule = add(session)
    due(session, schedule, timedelta(minutes=2))
    assert said() == {}, "everybody looks each minute: it may still be sent in time"
    due(session, schedule, timedelta(minutes=10))
    assert re.match("It was due 10.min.* ago and was not sent, limit 3.min", said()["schedule Nightly"])
    runner.run(session, postgresql(), "test")
    assert said() == {}


def test_paused_schedule_is_no_warning(session: Connection) -> None:
    schedule = add(session)
    due(session, schedule, timedelta(minutes=10))
    session.run("update messages.schedule set paused_at = now(), paused_by = 'ana'")
    assert said() == {}


def test_refused_schedule_warns_with_the_databases_error(session: Connection) -> None:
    session.run("alter table messages.message add constraint no_sweep check (message->>'kind' <> 'sweep')")
    schedule = add(session)
    due(session, schedule, timedelta(seconds=20))
    runner.run(session, postgresql(), "test")
    (found,) = KIND.find(look(unsent_schedules=ScheduleWatch().newest()))
    assert found.said.fact == "Its last message was not sent"
    assert "no_sweep" in found.said.meaning


def test_a_database_that_is_away_ends_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert ScheduleWatch().newest() is None
    assert not KIND.can_tell(look(unsent_schedules=None))
    assert KIND.can_tell(look(unsent_schedules=[]))


def test_a_database_without_schedules_has_none_that_is_late(session: Connection) -> None:
    session.run("drop schema messages cascade")
    assert ScheduleWatch().newest() == []
