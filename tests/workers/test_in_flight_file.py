"""The messages a process has in flight can be read by other processes, also after its death."""

import struct
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.workers.reporting.in_flight_file import SLOTS, InFlightFile, read


def message(
    message_id: str = "m-1", type: str = "Shop.PlaceOrder", more: dict[str, str | None] | None = None
) -> IncomingMessage:
    headers = {"NServiceBus.MessageId": message_id, "NServiceBus.EnclosedMessageTypes": type, **(more or {})}
    return IncomingMessage(Address("public", "Sales"), str(uuid4()), 7, False, "", b"", headers)


def test_message_is_in_the_file_until_its_slot_is_empty(tmp_path: Path) -> None:
    path, taken = tmp_path / "hand", message()
    hands = InFlightFile(path)
    hands.take(3, taken)
    (seen,) = read(path)
    assert (seen.slot, seen.seq, seen.row_id) == (3, 7, UUID(taken.row_id))
    assert (seen.message_id, seen.type) == ("m-1", "Shop.PlaceOrder")
    hands.empty(3)
    assert read(path) == []


def test_long_names_are_cut_and_slots_beyond_the_file_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "hand"
    hands = InFlightFile(path)
    hands.take(0, message("é" * 500, "T" * 500))
    hands.take(SLOTS, message())
    hands.empty(SLOTS)
    (seen,) = read(path)
    assert seen.message_id == "é" * 50
    assert seen.type == "T" * 120


def test_a_file_that_is_gone_is_an_empty_hand(tmp_path: Path) -> None:
    assert read(tmp_path / "never") == []


@pytest.mark.parametrize("since", [float("nan"), float("inf"), 1e300, -1e18])
def test_a_damaged_slot_is_empty_and_the_others_are_told(tmp_path: Path, since: float) -> None:
    path = tmp_path / "hand"
    InFlightFile(path).take(1, message())
    with path.open("r+b") as file:
        file.write(struct.pack("<d", since))
    assert [seen.slot for seen in read(path)] == [1]


def test_a_full_disk_costs_what_is_told_and_no_process(caplog: pytest.LogCaptureFixture) -> None:
    hands = InFlightFile(Path("/dev/full"))
    hands.take(0, message())
    hands.empty(0)
    assert "nobody will know what it had in flight" in caplog.text


def test_its_place_on_the_disk_is_taken_at_once(tmp_path: Path) -> None:
    """If allocated later, a full disk would end the process by SIGBUS."""
    path = tmp_path / "hand"
    InFlightFile(path)
    assert path.stat().st_blocks * 512 >= path.stat().st_size > 0
