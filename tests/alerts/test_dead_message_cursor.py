"""Reading the archive incrementally misses no death and counts none twice."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction

from pgqueue_admin.alerts import dead_message_cursor
from pgqueue_admin.alerts.dead_message_cursor import DeadMessageCursor, NewDeaths, OldDeaths
from pgqueue_admin.archive import dead_messages, move_to_archive, store
from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.archive.move_to_archive import MoveReason
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Cursor
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport import Endpoint
from tests.alerts.conftest import BILLING
from tests.alerts.reading import Die, died, read

Connect = Callable[[str], Connection]
REFUSED = DeadMessage(queue=BILLING, exception_type="Shop.Refused")


def test_each_death_once(console_database: str, die: Die) -> None:
    assert died(read()) == {}
    die(2)
    die(1, "Shop.Timeout")
    assert died(read()) == {(BILLING, "Shop.Refused"): 2, (BILLING, "Shop.Timeout"): 1}
    assert died(read()) == {}


def test_death_committed_late_is_read(console_database: str, die: Die, connect: Connect) -> None:
    """Its seq is lower than the last one read: its transaction was still open then."""
    read()
    late = connect(console_database)
    with late.transaction():
        store.archive_failed(late, REFUSED)
        die(3)
        assert died(read()) == {(BILLING, "Shop.Refused"): 3}
    assert died(read()) == {(BILLING, "Shop.Refused"): 1}
    assert died(read()) == {}


def test_message_taken_out_by_a_person_counts_only_once_dead(console_database: str, die: Die, connect: Connect) -> None:
    """A message that died is reported even if somebody discarded it before the look."""
    read()
    connection = connect(console_database)
    endpoint = Endpoint("Sales", console_database)
    endpoint.create_queues()
    for act in (move_to_archive.discard, move_to_archive.move_out):
        endpoint.send("Sales", {}, type="Shop.Do")
        row: Any = connection.one('select id, seq from "Sales"')
        seen = SeenRow(Address("public", "Sales"), row.id, row.seq)
        act(connection, seen, MoveReason("ana", "", "", f"Taken out by {act.__name__}."))
    die(1)
    dead_messages.discard(connection, [connection.value("select max(id) from messages.message_archive")], "ana")
    assert died(read()) == {('"public"."Sales"', "failed"): 1, (BILLING, "Shop.Refused"): 1}


class DiesBetween:
    """The alerter's statements; another session commits a death just before the second statement of a look."""

    def __init__(self, die: Die):
        self._die = die

    def __getattr__(self, name: str) -> Any:
        return getattr(queue_database().dialect.alerts, name)

    def lying(self, **parts: Any) -> Any:
        self._die(1)
        return queue_database().dialect.alerts.lying(**parts)


def test_death_during_a_read_is_counted_once(console_database: str, die: Die) -> None:
    """Totals and new deaths are read from one snapshot: a death is in both or in neither."""
    die(2)
    seen = SimpleNamespace(read_session=queue_database().read_session, dialect=SimpleNamespace(alerts=DiesBetween(die)))
    with transaction.atomic(), dead_message_cursor.cursor() as cursor:
        first = DeadMessageCursor().read(seen, cursor)  # type: ignore[arg-type]
    assert [group.count for group in first.lying or []] == [2]
    assert died(read()) == {(BILLING, "Shop.Refused"): 1}


def test_a_savepoint_and_a_rollback(console_database: str, connect: Connect) -> None:
    read()
    writer = connect(console_database)
    with writer.transaction():
        store.archive_failed(writer, REFUSED)
        with contextlib.suppress(ZeroDivisionError), writer.transaction():
            store.archive_failed(writer, REFUSED)
            raise ZeroDivisionError
        with writer.transaction():
            store.archive_failed(writer, REFUSED)
    assert died(read()) == {(BILLING, "Shop.Refused"): 2}


@pytest.mark.parametrize("at", ["infinity", "10000-01-01", "-infinity", "0044-03-15 BC"])
def test_a_time_that_no_calendar_has_hides_no_death(console_database: str, connect: Connect, at: str) -> None:
    """The archive's former owner still writes into it: one such row must not stop the reporting of deaths."""
    read()
    theirs = """
        insert into messages.message_archive (created_at, archived_at, died_at, message, result, handled_by)
        values (now(), %(at)s::timestamp, %(at)s::timestamptz, '{}', 'failed', 'w')
    """
    connect(console_database).run(theirs, {"at": at})
    reading = read()
    assert (reading.error, [each.count for each in reading.deaths]) == ("", [1])
    assert [each.count for each in reading.lying or []] == [1]
    now = datetime.now(UTC)
    assert all(each.first_at <= now for each in [*reading.deaths, *(reading.lying or [])]), "not since tomorrow"


def test_a_cursor_that_was_not_committed_reads_the_same_again(console_database: str, die: Die) -> None:
    read()
    die(2)
    with transaction.atomic(), dead_message_cursor.cursor() as cursor:
        first = DeadMessageCursor().read(queue_database(), cursor)
        transaction.set_rollback(True)
    assert died(first) == died(read()) == {(BILLING, "Shop.Refused"): 2}


def test_death_retried_before_the_read_is_counted(console_database: str, die: Die, connect: Connect) -> None:
    read()
    die(1)
    connect(console_database).run("update messages.message_archive set resolution = 'retried'")
    reading = read()
    assert died(reading) == {(BILLING, "Shop.Refused"): 1}
    assert reading.lying == []


def test_successes_are_no_deaths(console_database: str, connect: Connect) -> None:
    read()
    store.archive_failed(connect(console_database), DeadMessage(queue=BILLING, kind="control", result="success"))
    reading = read()
    assert (reading.deaths, reading.lying) == ([], [])


def test_without_an_exception_the_result_is_the_cause(console_database: str, connect: Connect) -> None:
    read()
    insert = (
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " values (now(), '{}', 'lock_expired', 'worker')"
    )
    connect(console_database).run(insert)
    assert died(read()) == {('"messages"."message"', "lock_expired"): 1}


def test_old_failures_ingested_after_the_first_read_count_as_a_pile(console_database: str, die: Die) -> None:
    read()
    die(2, died_at=datetime.now(UTC) - timedelta(days=1))
    die(1)
    reading = read()
    (deaths,) = reading.deaths
    assert (deaths.count, deaths.old) == (3, 2)
    assert reading.piles == [OldDeaths(BILLING, 2)]


def test_later_an_old_failure_that_no_error_queue_held_is_news(console_database: str, die: Die) -> None:
    """The sender's clock may be wrong: after the first minutes only the archive's own time counts."""
    read()
    cursor = Cursor.objects.get()
    began = datetime.now(UTC) - dead_message_cursor.OLD_STOCK
    cursor.position |= {"began": began.isoformat()}
    cursor.save()
    die(2, died_at=datetime.now(UTC) - timedelta(days=1))
    (deaths,) = read().deaths
    assert (deaths.count, deaths.old) == (2, 0)


def test_cursor_of_another_database_restarts(console_database: str, die: Die, caplog: pytest.LogCaptureFixture) -> None:
    read()
    Cursor.objects.update(position={**Cursor.objects.get().position, "database": "123/45"})
    die(2)
    assert died(read()) == {}
    assert "another database than before" in caplog.text
    die(1)
    assert died(read()) == {(BILLING, "Shop.Refused"): 1}


def test_a_database_that_was_set_back_in_time_is_read_on_from_there(
    console_database: str, die: Die, caplog: pytest.LogCaptureFixture
) -> None:
    """A restored backup restarts transaction ids lower: a position ahead of them would hide deaths."""
    read()
    cursor = Cursor.objects.get()
    ahead = int(cursor.position["snapshot"].split(":")[1]) + 1_000_000
    cursor.position |= {"snapshot": f"{ahead}:{ahead}:"}
    cursor.save()
    read()
    assert "set back" in caplog.text
    die(1)
    assert died(read()) == {(BILLING, "Shop.Refused"): 1}


def test_without_tables_the_command_is_named_and_nothing_is_lost(console_database: str, connect: Connect) -> None:
    connection = connect(console_database)
    connection.run("alter schema messages rename to elsewhere")
    assert "manage.py engine_schema" in read().error
    connection.run("alter schema elsewhere rename to messages")
    store.archive_failed(connection, REFUSED)
    assert died(read()) == {(BILLING, "Shop.Refused"): 1}


def test_types_are_named(console_database: str, die: Die) -> None:
    read()
    die(1, message_type="Shop.B")
    die(2, message_type="Shop.A")
    (deaths,) = read().deaths
    assert isinstance(deaths, NewDeaths)
    assert deaths.types == ["Shop.A", "Shop.B"]
