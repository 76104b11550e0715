"""The supervisor can store whatever messages, logs and exceptions contain."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import InFlightAtCrash, Process, database_clock
from pgqueue_admin.workers.reporting import process_stats
from pgqueue_admin.workers.reporting.in_flight_file import InFlightEntry
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity
from pgqueue_admin.workers.supervisor.process_group import held_at_death
from pgqueue_admin.workers.supervisor.process_recorder import ProcessRecorder, record
from pgqueue_admin.workers.supervisor.role import RoleKey
from tests.waiting import PATIENCE, held_up, until

State = Process.State
ME = ProcessIdentity("house-1", 4121, 7)

pytestmark = pytest.mark.usefixtures("console_database")


def dead(*message_ids: str) -> list[InFlightAtCrash]:
    """A process that ended with these messages in flight."""
    now = datetime.now(UTC)
    held = [InFlightEntry(0, now, 1, uuid4(), each, "Shop.\0Do", "public", "Sales") for each in message_ids]
    role = SimpleNamespace(key=RoleKey("endpoint", "Sales"))
    return held_at_death(SimpleNamespace(held=held, how="ended by SIGSEGV", role=role, identity=ME), -11)  # type: ignore[arg-type]


def test_a_text_longer_than_its_column_costs_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGQUEUE_CODE_VERSION", "registry.example/shop/handlers@sha256:" + "4f" * 32)
    process_stats.code_version.cache_clear()
    record(ME, {"role": "alerter", "log": "/" + "deep/" * 100, "last_error": "e" * 5000, **process_stats.facts()})
    process_stats.code_version.cache_clear()
    row = Process.objects.get()
    assert (len(row.code_version), len(row.log), len(row.last_error)) == (64, 400, 5000)


def test_an_error_is_never_told_with_the_time_of_the_one_before() -> None:
    at = datetime.now(UTC)
    record(ME, {"role": "sampler", "last_error": "first", "last_error_at": at, **process_stats.facts()})
    record(ME, {"last_error": "second"})
    assert list(Process.objects.values_list("last_error", "last_error_at")) == [("second", None)]
    record(ME, {"last_error": "third", "last_error_at": at})
    record(ME, {"busy": 1})
    assert Process.objects.get().last_error_at is not None


def test_a_nul_costs_no_report() -> None:
    recorder = ProcessRecorder()
    recorder.note(ME, role="endpoint", endpoint="Sales", last_error="said \0 and \ud800")
    recorder.hold(dead("a\0b", "c"))
    recorder.write()
    assert not recorder.pending
    assert Process.objects.get().last_error == "said \N{SYMBOL FOR NULL} and ?"
    first, second = InFlightAtCrash.objects.order_by("pk")
    assert (first.message_id, first.message_type) == ("a\N{SYMBOL FOR NULL}b", "Shop.\N{SYMBOL FOR NULL}Do")
    assert (second.message_id, second.others_in_flight) == ("c", 1)


def test_the_same_death_told_twice_is_one() -> None:
    recorder, held = ProcessRecorder(), dead("a")
    recorder.hold(held)
    recorder.write()
    held[0].pk = None
    recorder.hold(held)
    recorder.write()
    assert InFlightAtCrash.objects.count() == 1


def test_lost_process_with_a_new_heartbeat_is_running_again() -> None:
    """Its row was closed by a supervisor that could not see it, or by one before a reboot that reused its pid."""
    record(ME, {"role": "endpoint", "state": State.RUNNING, "heartbeat_at": Now()})
    Process.objects.update(state=State.LOST, ended_at=Now())
    record(ME, {"busy": 1})
    assert Process.objects.get(state=State.LOST).ended_at is not None, "what is no heartbeat is no sign of life"
    record(ME, {"role": "endpoint", "state": State.RUNNING, "heartbeat_at": Now()})
    assert Process.objects.get(state=State.RUNNING).ended_at is None


@pytest.mark.parametrize("state", ["stopped", "crashed", "back-off"])
def test_a_heartbeat_that_comes_after_the_end_says_nothing(state: str) -> None:
    record(ME, {"role": "endpoint", "state": State.RUNNING, "heartbeat_at": Now()})
    Process.objects.update(state=state, ended_at=Now())
    record(ME, {"role": "endpoint", "state": State.RUNNING, "heartbeat_at": Now()})
    assert Process.objects.get(state=state).ended_at is not None


def test_times_are_recorded_by_the_database_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = timedelta(hours=3)
    monkeypatch.setattr(database_clock, "now", lambda: datetime.now(UTC) + behind)
    recorder, (held,) = ProcessRecorder(), dead("a")
    noted = held.died_at
    recorder.hold([held])
    recorder.write()
    written = InFlightAtCrash.objects.get()
    for instant in (written.died_at, written.received_at):
        assert abs(instant - noted - behind) < timedelta(minutes=1)
    assert held.died_at == noted


@contextmanager
def being_written(recorder: ProcessRecorder, tables: Connection, table: str) -> Iterator[None]:
    """Meanwhile the recorder waits at its first row of this table; afterwards all its writes are done."""

    def write() -> None:
        recorder.write()
        connections.close_all()

    writing = threading.Thread(target=write)
    with tables.transaction():
        tables.run(f"lock table {table} in exclusive mode")
        writing.start()
        until(lambda: held_up(tables), what="it writes")
        yield
    writing.join(PATIENCE)


def test_notes_during_a_write_are_written_next(tables: Connection) -> None:
    """A process that ends at that moment would be shown as running until its host is given up."""
    recorder = ProcessRecorder()
    recorder.note(ME, role="endpoint", state=State.RUNNING)
    with being_written(recorder, tables, "pgqueue_console.pgqueue_process"):
        recorder.note(ME, state=State.STOPPED, ended_at=datetime.now(UTC))
    recorder.write()
    assert (Process.objects.get().state, recorder.pending) == (State.STOPPED, False)


def test_in_flight_messages_held_during_a_write_are_written_next(tables: Connection) -> None:
    """A message that crashes one process after another would be undercounted and tried once more."""
    recorder = ProcessRecorder()
    recorder.hold(dead("a"))
    with being_written(recorder, tables, "pgqueue_console.pgqueue_inflightatcrash"):
        recorder.hold(dead("b"))
    recorder.write()
    assert sorted(InFlightAtCrash.objects.values_list("message_id", flat=True)) == ["a", "b"]
    assert not recorder.pending
