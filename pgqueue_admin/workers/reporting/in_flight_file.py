"""A memory-mapped file of the messages in flight: costs no write per message and survives the process."""

import logging
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from pgqueue_admin.transport.ports import HeldMessage
from pgqueue_admin.workers.reporting import run_directory
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity, start_ticks

log = logging.getLogger(__name__)
SLOTS = 64
_RECORD = struct.Struct("<d q 16s 100s 120s 63s 63s")  # since, seq, row id, message id, type, schema, table
_SIZE = 384
_WHOLE = SLOTS * _SIZE
_EMPTY = b"\0" * _SIZE


class InFlightEntry(NamedTuple):
    slot: int
    since: datetime
    seq: int
    row_id: UUID
    message_id: str
    type: str
    schema: str
    table: str


class InFlightFile:
    """Written by one process, each slot by the thread that uses it."""

    def __init__(self, path: Path):
        try:
            with path.open("w+b") as file:
                os.posix_fallocate(file.fileno(), 0, _WHOLE)  # else a full disk would kill us at a write
                self._map = mmap.mmap(file.fileno(), _WHOLE)
        except OSError as error:
            log.warning("If this process dies, nobody will know what it had in flight: %s", error)
            self._map = mmap.mmap(-1, _WHOLE)

    def take(self, slot: int, message: HeldMessage) -> None:
        names = _cut(message.message_id, 100), _cut(message.type, 120), *(_cut(name, 63) for name in message.queue)
        self._write(slot, _RECORD.pack(time.time(), message.seq, UUID(message.row_id).bytes, *names))

    def empty(self, slot: int) -> None:
        self._write(slot, _EMPTY)

    def _write(self, slot: int, record: bytes) -> None:
        if slot < SLOTS:
            self._map[slot * _SIZE : slot * _SIZE + len(record)] = record


def read(path: Path) -> list[InFlightEntry]:
    """What the process has, or had when it died. Empty if the file is gone; damaged slots are skipped."""
    try:
        content = path.read_bytes()
    except OSError:
        return []
    return list(_records(content))


def of(identity: ProcessIdentity) -> list[InFlightEntry]:
    """The entries of a process on this host."""
    return read(run_directory.in_hand_file(identity))


def take_away(identity: ProcessIdentity) -> list[InFlightEntry]:
    """Entries of an ended process; deletes its file."""
    held = of(identity)
    with suppress(OSError):  # a read-only disk: the entries count, and a later sweep finds the file
        run_directory.in_hand_file(identity).unlink(missing_ok=True)
    return held


def sweep() -> None:
    """Delete files of processes that ended unobserved."""
    run = run_directory.folder("run")
    for path in [*run.glob("*.hand"), *run.glob("*.pulse")]:
        pid, _, ticks = path.stem.partition("-")
        if start_ticks(int(pid)) != int(ticks):
            path.unlink(missing_ok=True)


def _records(content: bytes) -> Iterator[InFlightEntry]:
    for slot in range(len(content) // _SIZE):
        since, seq, row_id, *names = _RECORD.unpack_from(content, slot * _SIZE)
        if since:
            texts = (name.rstrip(b"\0").decode("utf-8", "replace") for name in names)
            with suppress(ValueError, OverflowError, OSError):  # an impossible time
                yield InFlightEntry(slot, datetime.fromtimestamp(since, UTC), seq, UUID(bytes=row_id), *texts)


def _cut(text: str, size: int) -> bytes:
    return text.encode("utf-8", "replace")[:size]
