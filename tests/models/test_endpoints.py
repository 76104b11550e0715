"""Acts on endpoints: one transaction of row, audit entry and wake-up; guarded, judged as a whole, undone."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connections, transaction

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry, Endpoint, Process, notify
from pgqueue_admin.services import endpoint_change, endpoints
from tests.waiting import PATIENCE, gathered, held_up, until


@pytest.fixture
def sales(console_database: str) -> Endpoint:
    return Endpoint.objects.create(name="Sales", table="Sales", desired_processes=2)


@pytest.fixture
def heard(console_database: str) -> Iterator[Connection]:
    with notify.listen(notify.ENDPOINT) as connection:
        yield connection


def told(heard: Connection) -> list[str]:
    """Notifications received so far; later ones are ignored."""
    notify.announce(notify.ENDPOINT, "the end")
    notes = gathered(lambda: heard.notifications(1), lambda notes: bool(notes) and notes[-1].payload == "the end")
    return [note.payload for note in notes[:-1]]


def test_a_saved_setting_is_audited_and_announced(sales: Endpoint, heard: Connection) -> None:  # C5
    row = endpoints.save_settings("Sales", {"peek_delay_ms": 250, "concurrency": 2}, "ana", "console", version=1)
    assert (row.peek_delay_ms, row.version) == (250, 2)
    entry = endpoint_change.history("Sales").get()
    assert (entry.who, entry.verb, entry.origin) == ("ana", "set", "console")
    assert (entry.before, entry.after) == ({"peek_delay_ms": 1000}, {"peek_delay_ms": 250})
    assert told(heard) == ["Sales"]


def test_unchanged_settings_are_neither_audited_nor_announced(sales: Endpoint, heard: Connection) -> None:
    assert endpoints.save_settings("Sales", {"peek_delay_ms": 1000}, "ana", "console").version == 1
    assert not AuditEntry.objects.exists()
    assert told(heard) == []


def test_the_second_of_two_is_told_who_was_quicker(sales: Endpoint) -> None:
    endpoints.save_settings("Sales", {"concurrency": 8}, "tomas", "console", version=1)
    with pytest.raises(
        endpoint_change.ChangedMeanwhile, match=r"Nothing was changed. tomas changed Sales at .* UTC"
    ) as told:
        endpoints.save_settings("Sales", {"concurrency": 4}, "ana", "console", version=1)
    assert told.value.who == "tomas"
    assert Endpoint.objects.get().concurrency == 8


def test_one_of_two_simultaneous_changes_is_refused(sales: Endpoint, heard: Connection) -> None:
    """Both read version 1: without a row lock the second would silently overwrite the first."""
    refused = list[str]()

    def save() -> None:
        try:
            endpoints.save_settings("Sales", {"concurrency": 4}, "ana", "console", version=1)
        except endpoint_change.ChangedMeanwhile as meanwhile:
            refused.append(meanwhile.who)
        connections.close_all()

    saving = threading.Thread(target=save)
    with transaction.atomic():
        endpoints.save_settings("Sales", {"concurrency": 8}, "tomas", "console", version=1)
        saving.start()
        until(lambda: held_up(heard), what="the second waits for the first")
    saving.join(PATIENCE)
    assert (refused, Endpoint.objects.get().concurrency) == (["tomas"], 8)


def test_all_faults_are_told_at_once(sales: Endpoint) -> None:
    faulty = {"peek_delay_ms": 0, "concurrency": 65, "max_records_to_peek": 0, "on_exhausted": "error_queue"}
    with pytest.raises(endpoint_change.FaultySettings) as told:
        endpoints.save_settings("Sales", faulty, "ana", "console")
    assert set(told.value.faults) == {"peek_delay_ms", "concurrency", "max_records_to_peek", "error_queue"}
    assert Endpoint.objects.get().version == 1


@pytest.mark.parametrize("delay", [99, 10_001])
def test_outside_the_peek_range_only_the_strict_one_refuses(sales: Endpoint, delay: int) -> None:  # T15
    assert endpoints.save_settings("Sales", {"peek_delay_ms": delay}, "ana", "console").peek_delay_ms == delay
    with pytest.raises(endpoint_change.FaultySettings, match="strict peek range allows 100 to 10,000 ms"):
        endpoints.save_settings("Sales", {"strict_peek_range": True}, "ana", "console")


def test_an_unknown_setting_is_named(sales: Endpoint) -> None:
    with pytest.raises(endpoint_change.FaultySettings, match="colour is not a setting"):
        endpoints.save_settings("Sales", {"colour": "red"}, "ana", "console")


def test_undo_puts_back_what_still_stands(sales: Endpoint) -> None:
    endpoints.save_settings("Sales", {"peek_delay_ms": 12_000}, "ivo", "console")
    entry = endpoints.last_changes("Sales")["peek_delay_ms"]
    row = endpoints.undo("Sales", entry.id, "ana", "console")
    assert (row.peek_delay_ms, row.version) == (1000, 3)
    newest = endpoint_change.history("Sales").first()
    assert newest is not None
    assert (newest.verb, newest.reason) == ("undo", f"undoes change {entry.id}")


def test_undo_is_refused_once_somebody_changed_it_again(sales: Endpoint) -> None:
    endpoints.save_settings("Sales", {"peek_delay_ms": 12_000}, "ivo", "console")
    entry = endpoints.last_changes("Sales")["peek_delay_ms"]
    endpoints.save_settings("Sales", {"peek_delay_ms": 500}, "tomas", "console")
    with pytest.raises(endpoint_change.ChangedMeanwhile, match="tomas"):
        endpoints.undo("Sales", entry.id, "ana", "console")


def test_creation_cannot_be_undone(console_database: str) -> None:
    endpoints.create("Sales", {"desired_processes": 1}, "ana", "command")
    with pytest.raises(endpoint_change.ActRefused, match="replaced nothing"):
        endpoints.undo("Sales", AuditEntry.objects.get().id, "ana", "console")


def test_desired_state_changes_by_its_verbs(sales: Endpoint) -> None:
    endpoints.scale("Sales", 4, "ana", "console")
    endpoints.pause("Sales", "ana", "console")
    endpoints.resume("Sales", "ana", "console")
    endpoints.stop("Sales", "ana", "console")
    assert endpoints.start("Sales", "ana", "console").desired_processes == 1
    verbs = [entry.verb for entry in endpoint_change.history("Sales").order_by("id")]
    assert verbs == ["scale", "pause", "resume", "stop", "start"]


def test_start_ends_a_back_off(sales: Endpoint, heard: Connection) -> None:
    from django.db.models.functions import Now

    waits = Process.State.BACK_OFF
    facts = {"host": "h", "pid": 1, "start_ticks": 1, "started_at": Now(), "heartbeat_at": Now(), "ended_at": Now()}
    Process.objects.create(role="endpoint", endpoint="Sales", state=waits, next_start_at="2100-01-01T00:00Z", **facts)
    endpoints.start("Sales", "ana", "console")
    assert Process.objects.filter(next_start_at__lte=Now()).exists()
    assert told(heard) == ["Sales"]


def test_a_foreign_endpoint_has_declared_values_and_no_processes(console_database: str) -> None:
    address = Address("Legacy", "Invoicing")
    row = endpoints.declare("Invoicing", address, {"peek_delay_ms": 5000}, "ana", "console")
    assert (row.ours, row.schema, row.peek_delay_ms) == (False, "Legacy", 5000)
    endpoints.declare("Invoicing", address, {"peek_delay_ms": 6000}, "ana", "console")
    with pytest.raises(endpoint_change.NotManaged, match="where it runs"):
        endpoints.start("Invoicing", "ana", "console")


def test_declaration_is_audited_with_its_address(console_database: str) -> None:
    """Even if the delay equals the default of a new row."""
    delay = Endpoint().peek_delay_ms
    endpoints.declare("Invoicing", Address("Legacy", "Bills"), {"peek_delay_ms": delay}, "ana", "console")
    endpoints.declare("Invoicing", Address("Legacy", "Bills"), {"peek_delay_ms": delay + 1}, "ana", "console")
    again, first = endpoint_change.history("Invoicing")
    assert (first.verb, first.who, first.before) == ("declare", "ana", None)
    assert first.after == {"schema": "Legacy", "table": "Bills", "peek_delay_ms": delay}
    assert (again.verb, again.before, again.after) == (
        "set",
        {"peek_delay_ms": delay},
        {"peek_delay_ms": delay + 1},
    )


def test_an_unknown_endpoint_is_named(console_database: str) -> None:
    with pytest.raises(endpoint_change.NoSuchEndpoint, match="no endpoint named Nobody"):
        endpoints.pause("Nobody", "ana", "console")
