"""Expired locks of the lease queue are warned of until somebody ends them."""

from collections.abc import Callable

import pytest
from django.db import connections

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.periodic_looks import LeaseLockWatch
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue, expiry
from pgqueue_admin.models import Alert
from pgqueue_admin.monitor import depth
from tests.alerts.test_kinds import look
from tests.archive.test_schema import ORIGINAL
from tests.lease.tables import let_expire

KIND = BY_NAME["expired_locks"]


@pytest.fixture
def session(console_database: str, connect: Callable[..., Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def queue(console_database: str) -> LeaseQueue:
    return LeaseQueue(console_database)


def found() -> list[Finding]:
    return list(KIND.find(look(lease_locks=LeaseLockWatch().newest())))


def sentences() -> list[str]:
    return [each.sentence.replace("\u00a0", " ") for each in found()]


def test_expired_locks_warn_until_ended(session: Connection, queue: LeaseQueue) -> None:
    ids = queue.publish_many(["dead", "dead", "worked on", "waits"])
    queue.claim(3)
    let_expire(session, ids[0], "2 minutes")
    assert sentences() == [], "everybody ends them each minute: it may still be in time"
    let_expire(session, ids[0], "10 minutes")
    assert sentences() == [
        "1 expired lock not ended, the first over for 10 min, limit 3 min. No process ends expired locks. "
        "Until one does, this message is neither worked on nor dead. Start a supervisor, beat or the job of "
        "pg_cron, or run manage.py lease expire."
    ]
    let_expire(session, ids[1], "1 second")
    (both,) = found()
    assert both.said.fact.startswith("2 expired locks not ended, the first over for 10")
    assert (both.subject, both.queue) == ('"messages"."message"', '"messages"."message"')
    expiry.end_and_renotify(session, postgresql())
    assert found() == []
    queue.close()


def test_warning_opens_at_the_end_of_the_first_lock(session: Connection, queue: LeaseQueue) -> None:
    (message,) = queue.publish_many(["dead"])
    queue.claim()
    let_expire(session, message, "10 minutes")
    Alerter().run_once()
    alert = Alert.objects.get(kind="expired_locks")
    assert (alert.severity, alert.count) == ("critical", 0)
    over = session.value("select lock_expires_at at time zone 'utc' from messages.message")
    assert alert.opened_at == over
    assert expiry.end_and_renotify(session, postgresql()).archived == 1
    Alerter().run_once()
    alert.refresh_from_db()
    assert alert.resolved_at
    queue.close()


def test_expired_locks_are_counted_up_to_the_cap(session: Connection) -> None:
    session.run(
        "insert into messages.message (message, lock_expires_at)"
        " select '1', now() at time zone 'utc' - interval '1 hour' from generate_series(1, %(rows)s)",
        {"rows": depth.CAP + 2},
    )
    assert found()[0].said.fact.startswith("10,000+ expired locks not ended, the first over for 1")


@pytest.mark.parametrize("end", ["-infinity", "0044-03-15 BC"])
def test_an_end_that_no_calendar_reaches_is_over_for_very_long(session: Connection, end: str) -> None:
    session.run("insert into messages.message (message, lock_expires_at) values ('1', %(end)s)", {"end": end})
    assert len(found()) == 1


def test_warning_of_an_original_table_names_engine_schema(session: Connection) -> None:
    session.run("drop schema messages cascade; drop type message_status cascade")
    session.run(ORIGINAL)
    session.run(
        "insert into messages.message (message, lock_expires_at)"
        " values ('1', now() at time zone 'utc' - interval '1 hour')"
    )
    (told,) = sentences()
    assert "run manage.py engine_schema" in told


def test_a_database_that_is_away_ends_no_warning(session: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert LeaseLockWatch().newest() is None
    assert not KIND.can_tell(look(lease_locks=None))
    assert KIND.can_tell(look(lease_locks=[]))


def test_a_database_without_a_lease_queue_has_none(session: Connection) -> None:
    session.run("drop schema messages cascade")
    assert LeaseLockWatch().newest() == []
