"""One endpoint process: settings at run time, its reports, and failed messages."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import MinimumTtbr, Process, notify, processes
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.workers.reporting import in_flight_file, process_stats
from tests.waiting import NOISE, until, within
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE


def handled(look: Connection) -> int:
    return look.value("select count(*) from handled") or 0


@pytest.fixture
def child(house: House) -> Process:
    want(1, peek_delay_ms=100)
    house.supervise()
    return house.running(1)[0]


def held(house: House, sales: Endpoint, gate: Path) -> str:
    """A message in flight until the gate is opened."""
    message_id = sales.send("Sales", {"hold": str(gate)}, type=TYPE)
    until(gate.with_suffix(".held").exists, what="in hand")
    return message_id


def test_a_setting_is_taken_within_a_second_without_a_restart(
    house: House, child: Process, sales: Endpoint, look: Connection, tmp_path: Path
) -> None:  # C5
    gates = [tmp_path / f"gate-{number}" for number in range(4)]
    for gate in gates[:2]:
        held(house, sales, gate)
    sales.send("Sales", {"hold": str(gates[2])}, type=TYPE)
    row = endpoints.save_settings("Sales", {"concurrency": 4}, "ana", "console")
    within(1, gates[2].with_suffix(".held").exists, "a third slot, though two are busy")
    taken = within(2, lambda: found if (found := processes.taken(row)).by == found.of == 1 else None, "reported")
    assert taken is not None
    assert taken.seconds is not None
    assert 0 <= taken.seconds < 1 * NOISE
    assert house.running(1)[0].pid == child.pid
    for gate in gates:
        gate.touch()
    until(lambda: handled(look) == 3)


def test_a_paused_process_stays_and_receives_nothing(
    house: House, child: Process, sales: Endpoint, look: Connection
) -> None:
    endpoints.pause("Sales", "ana", "console")
    assert house.running(1, state="paused")[0].pid == child.pid
    sales.send("Sales", {}, type=TYPE)
    version = endpoints.save_settings("Sales", {"immediate_retries": 0}, "ana", "console").version
    until(lambda: house.rows(settings_version=version), what="a later change is taken too")
    assert handled(look) == 0
    assert sales.queue.peek(look) == 1
    endpoints.resume("Sales", "ana", "console")
    until(lambda: handled(look) == 1, what="resumed")
    assert house.running(1)[0].pid == child.pid


def test_paused_start_receives_only_after_resume(house: House, sales: Endpoint, look: Connection) -> None:
    want(1, paused=True)
    sales.send("Sales", {}, type=TYPE)
    house.supervise()
    house.running(1, state="paused")
    assert sales.queue.peek(look) == 1
    endpoints.resume("Sales", "ana", "console")
    until(lambda: handled(look) == 1, what="resumed")


def test_in_flight_message_is_visible_from_outside(
    house: House, child: Process, sales: Endpoint, look: Connection, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    message_id = held(house, sales, gate)
    path = house.var / "run" / f"{child.pid}-{child.start_ticks}.hand"
    (seen,) = in_flight_file.read(path)
    assert (seen.message_id, seen.type) == (message_id, TYPE)
    assert seen.row_id == look.value('select id from "Sales"')
    until(lambda: house.rows(busy=1), what="counted in its heartbeat")
    gate.touch()
    until(lambda: in_flight_file.read(path) == [], what="an empty hand")


def test_figures_are_reported(house: House, child: Process, sales: Endpoint, look: Connection) -> None:
    sales.send("Sales", {}, type=TYPE)
    sales.send("Sales", {"fail": True}, type=TYPE)
    counted: dict[str, Any] = {"received": 4, "handled": 1, "failed": 2, "retried": 1}
    row = house.first("one handled, one tried twice and then put away", critical_p95_ms__isnull=False, **counted)
    assert row.last_error == "ValueError: told to fail"
    assert row.memory_bytes > 10_000_000
    assert row.code_version
    assert row.code_version == process_stats.of_modules(["tests.workers.shop.handlers"])
    assert row.busy_share is not None
    assert 0 < row.busy_share < 1
    assert row.critical_p95_ms is not None
    assert row.critical_p95_ms > 0
    assert row.slots == 2


def test_an_expired_message_is_counted_and_its_ttbr_kept(
    house: House, child: Process, sales: Endpoint, look: Connection
) -> None:  # T3, T16
    from datetime import timedelta

    endpoints.pause("Sales", "ana", "console")
    house.running(1, state="paused")
    sales.send("Sales", {}, type="Shop.Quote", ttbr=timedelta(milliseconds=1))
    until(lambda: look.value("select now() at time zone 'utc' > expires from \"Sales\""), what="expired")
    endpoints.resume("Sales", "ana", "console")
    row = house.first("counted", expired=1)
    assert row.last_expired_at is not None
    until(lambda: MinimumTtbr.objects.filter(message_type="Shop.Quote", ttbr_ms=1), what="kept")
    assert MinimumTtbr.objects.get().queue.endpoint == "Sales"


def test_exhausted_message_is_archived_and_its_retry_succeeds(
    house: House, child: Process, sales: Endpoint, look: Connection
) -> None:  # C4
    message_id = sales.send("Sales", {"fail": True}, type=TYPE)
    (dead,) = until(lambda: store.page(look, ArchiveFilter()).messages, what="archived")
    assert (dead.message_id, dead.endpoint, dead.result) == (message_id, "Sales", "failed")
    assert (dead.exception_type, dead.attempts) == ("ValueError", 2)
    look.run("update messages.message_archive set body = '{}'")  # fixed, as by another version of the handler
    (outcome,) = dead_messages.retry(look, [dead.id], "ana", ours=lambda address: True)
    assert outcome.result == "done"
    until(lambda: handled(look) == 1, what="handled")
    archived = store.get(look, dead.id)
    assert archived is not None
    assert archived.state == "succeeded"
    assert [event.verb for event in store.events(look, dead.id)] == ["retried", "succeeded"]


def test_exhausted_message_goes_to_the_error_queue_by_setting(house: House, sales: Endpoint, look: Connection) -> None:
    want(1, on_exhausted="error_queue", error_queue="error", immediate_retries=0)
    house.supervise()
    house.running(1)
    sales.send("Sales", {"fail": True}, type=TYPE)
    headers = until(lambda: look.value('select headers::jsonb from "error"'), what="in the error queue")
    assert headers["NServiceBus.FailedQ"] == '"public"."Sales"'
    assert not store.page(look, ArchiveFilter()).messages


def test_values_that_cannot_be_are_refused_and_the_former_hold(
    house: House, child: Process, sales: Endpoint, look: Connection
) -> None:
    """A row written by SQL bypasses every validation."""
    row = endpoints.save_settings("Sales", {"peek_delay_ms": 200}, "ana", "console")
    until(lambda: house.rows(settings_version=row.version), what="taken")
    type(row).objects.update(peek_delay_ms=0, version=row.version + 1)
    notify.announce(notify.ENDPOINT, "Sales")
    refused = house.first("said", last_error__startswith=f"settings version {row.version + 1} refused: peek_delay")
    assert refused.settings_version == row.version
    sales.send("Sales", {}, type=TYPE)
    until(lambda: handled(look) == 1, what="it works on")


def test_no_celery_spark_or_checks_in_a_worker(house: House, child: Process, sales: Endpoint, look: Connection) -> None:
    sales.send("Sales", {}, type=TYPE)
    until(lambda: handled(look) == 1)
    assert look.value("select modules from handled") == []


def test_an_undeclared_endpoint_says_what_to_write(house: House) -> None:
    want(1, name="Nobody")
    house.supervise()
    crashed = house.first("crashed", endpoint="Nobody", ended_at__isnull=False)
    assert "No application declares the endpoint Nobody: write endpoint('Nobody')" in crashed.last_line


def test_a_missing_queue_table_is_named(house: House, look: Connection) -> None:
    look.run('drop table "Sales"')
    want(1)
    house.supervise()
    crashed = house.first("crashed", ended_at__isnull=False)
    assert 'Sales cannot start. The queue table "public"."Sales" does not exist' in crashed.last_line


def test_a_child_whose_parent_is_gone_does_not_begin(house: House) -> None:
    import sys

    environment = {**house.environment, "PGQUEUE_PARENT": "1"}
    command = [sys.executable, "-m", "pgqueue_admin.workers.processes.child_bootstrap", "worker", "Sales"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.strip() == "process 1, which started this one, is gone"
