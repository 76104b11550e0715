"""Samples every queue in as few round trips as possible, and derives rates and ages from earlier samples."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from math import ceil
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, TableMissing, TimedOut
from pgqueue_admin.monitor import clock_skew, depth, discovery
from pgqueue_admin.monitor.depth import CAP
from pgqueue_admin.monitor.depth_result import QueueDepth
from pgqueue_admin.monitor.queue_history import BLIND_AFTER, QueueHistory, RememberedDepth
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.wire_times import parse_time

FIND_EVERY = 5.0  # seconds between catalog reads
ASK_AGAIN_EVERY = 60.0  # seconds between reads of what rarely changes: sizes, evidence in messages
_MISSED = 5  # missed samples after which arrival times are unknown
_BATCH = 10  # tables per round trip; they stay locked against ALTER until it ends


class UnreadTable(NamedTuple):
    """Why a table could not be read: in words, and by SQLSTATE if the server gave one."""

    error: str
    sqlstate: str = ""


Found = dict[Address, QueueDepth | UnreadTable]


@dataclass(frozen=True, slots=True)
class QueueSample:
    """One queue at one instant. ``depth`` is None if unreadable; ``error`` then says why."""

    table: QueueTable
    at: datetime
    depth: QueueDepth | None
    delayed: QueueDepth | None  # of its delayed table
    in_per_second: float | None = None
    out_per_second: float | None = None
    oldest_at: datetime | None = None
    oldest_how: str = "exact"
    changed_at: datetime | None = None
    last_departure_at: datetime | None = None
    low_water_checked_at: datetime | None = None
    size_bytes: int | None = None
    error: str = ""
    sqlstate: str = ""


class Sampler:
    """``connect`` opens a read-only session with a statement timeout; it is kept, and reopened when lost.

    ``every``: the caller's intended seconds between samples.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        schemas: Sequence[str],
        *,
        cap: int = CAP,
        every: float = 1.0,
        remembered: Callable[[Address], RememberedDepth | None] = lambda address: None,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._connect, self._schemas, self._cap = connect, schemas, cap
        self._remembered, self._monotonic = remembered, monotonic
        self._blind_after = max(BLIND_AFTER, timedelta(seconds=_MISSED * every))
        self._connection: Connection | None = None
        self._tables: list[QueueTable] = []
        self._tracks: dict[Address, QueueHistory] = {}
        self._oids: dict[Address, int] = {}  # of the tables that have a track
        self._evidence: discovery.Evidence = {}
        self._sizes: dict[int, int] = {}
        self._skews: dict[Address, timedelta] = {}
        self._alone: set[Address] = set()  # tables that failed in a batch are queried alone
        self._read_again_at: dict[Address, float] = {}  # heads whose headers could not be read
        self._find_at = self._ask_again_at = 0.0
        self._unfound: DatabaseError | None = None
        self._settings: Any = None  # the session's settings when opened

    @property
    def tables(self) -> list[QueueTable]:
        """As last found."""
        return self._tables

    @property
    def unfound(self) -> str:
        """The error of the last catalog read, or "". While it is set, tables found earlier are still measured."""
        return str(self._unfound or "")

    def sample(self, now: datetime | None = None) -> list[QueueSample]:
        """Sample every queue; an unreadable one has an error. Raises DatabaseError if none can be read: the database is
        down, or too slow."""
        if self._connection:
            try:
                return self._pass(now)
            except DatabaseDown:
                self.close()  # the session was lost, but a new one may succeed
        return self._pass(now)

    def _pass(self, now: datetime | None) -> list[QueueSample]:
        connection = self._session()
        at = now or connection.value(connection.dialect.monitor.server_time())
        self._find(connection)
        return self._look(connection, at)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _session(self) -> Connection:
        if self._connection and not self._connection.closed and self._monotonic() >= self._find_at:
            self._close_if_changed(self._connection)
        if self._connection is None or self._connection.closed:
            connection = self._connect()
            try:
                connection.one(connection.dialect.monitor.patience())
                self._settings = connection.settings()
            except DatabaseError:
                connection.close()  # or it would stay open without its lock timeout
                raise
            self._connection, self._find_at = connection, 0.0
        return self._connection

    def _close_if_changed(self, connection: Connection) -> None:
        """No foreign code should run in this session. If some did and changed its settings, end the session."""
        if connection.settings() != self._settings:
            self.close()

    def _find(self, connection: Connection) -> None:
        clock = self._monotonic()
        if clock >= self._find_at:
            try:
                self._refresh(connection, clock)
                self._forget_the_gone()
                self._unfound = None
            except DatabaseDown:
                raise
            except DatabaseError as error:
                self._unfound = error
            self._find_at = clock + FIND_EVERY  # also after an error: a slow read is not repeated at every sample
        if self._unfound and not self._tables:
            raise self._unfound.with_traceback(None)

    def _refresh(self, connection: Connection, clock: float) -> None:
        """Find tables; at longer intervals also read their sizes and their due times' skew."""
        self._tables = discovery.find(connection, self._schemas, self._evidence, self._doubted())
        if clock >= self._ask_again_at:
            self._sizes = depth.table_sizes(connection, self._tables) or self._sizes
            self._skews = clock_skew.zones(connection, self._tables, self._skews)
            self._ask_again_at = clock + ASK_AGAIN_EVERY

    def _forget_the_gone(self) -> None:
        present = {table.address for table in self._tables}
        self._tracks = {address: track for address, track in self._tracks.items() if address in present}
        self._read_again_at = {address: at for address, at in self._read_again_at.items() if address in present}
        self._oids = {address: oid for address, oid in self._oids.items() if address in present}
        self._evidence = {address: told for address, told in self._evidence.items() if address in present}
        self._alone &= present

    def _doubted(self) -> set[Address]:
        """Tables whose messages are checked again, those checked longest ago first.

        Each once per ASK_AGAIN_EVERY, spread over catalog reads.
        """
        return set(islice(self._evidence, ceil(len(self._evidence) * FIND_EVERY / ASK_AGAIN_EVERY)))

    def _look(self, connection: Connection, at: datetime) -> list[QueueSample]:
        wanted = [table for table in self._tables if table.is_measured]
        wanted = self._as_they_are_now(connection, wanted)
        measured = [table for table in wanted if not table.why_unread]
        found: Found = {table.address: UnreadTable(table.why_unread) for table in wanted if table.why_unread}
        found |= self._measure(connection, measured, at)
        for table in measured:
            if isinstance(looked := found[table.address], QueueDepth):
                self._track(table).note(at, looked)
        self._read_sent_at(connection, measured)
        return [self._sample(table, at, found) for table in self._tables]

    def _as_they_are_now(self, connection: Connection, tables: list[QueueTable]) -> list[QueueTable]:
        """Between two catalog reads an owner may have created an index that calls their function. While the catalog is
        locked nobody can: then the earlier result holds."""
        try:
            calls = discovery.calls(connection)
        except DatabaseDown:
            raise
        except DatabaseError:
            return tables
        return [replace(table, calls=calls.get(table.oid, "")) for table in tables]

    def _measure(self, connection: Connection, tables: Iterable[QueueTable], at: datetime) -> Found:
        company = [table for table in tables if table.address not in self._alone]
        found: Found = {}
        for start in range(0, len(company), _BATCH):
            found |= self._together(connection, company[start : start + _BATCH], at)
        for table in tables:
            if table.address not in found:
                found[table.address] = self._by_itself(connection, table, at)
        return found

    def _together(self, connection: Connection, tables: list[QueueTable], at: datetime) -> Found:
        """All or nothing: if one query fails, each table is queried alone."""
        try:
            answers = connection.batch([self._asked(connection, table, at) for table in tables])
        except DatabaseDown:
            raise
        except DatabaseError:
            return {}
        return {t.address: depth.read(t, rows[0], self._cap) for t, rows in zip(tables, answers, strict=True)}

    def _by_itself(self, connection: Connection, table: QueueTable, at: datetime) -> QueueDepth | UnreadTable:
        try:
            row = connection.one(*self._asked(connection, table, at))
        except DatabaseDown:
            raise
        except DatabaseError as error:
            self._alone.add(table.address)
            self._find_at = 0.0 if isinstance(error, TableMissing) else self._find_at
            return UnreadTable(str(error), error.sqlstate or "")
        self._alone.discard(table.address)
        return depth.read(table, row, self._cap)

    def _asked(self, connection: Connection, table: QueueTable, at: datetime) -> depth.Asked:
        off = self._skews.get(table.address, depth.NO_SKEW)
        low, monitor = self._track(table).begin_at(at), connection.dialect.monitor
        return depth.asked(monitor, table, cap=self._cap, now=at, low_water=low, skew=off)

    def _track(self, table: QueueTable) -> QueueHistory:
        if table.address not in self._tracks:
            self._tracks[table.address] = QueueHistory(self._remembered(table.address), self._blind_after)
        if self._oids.get(table.address, table.oid) != table.oid:  # dropped and recreated
            self._tracks[table.address].begin_anew()
            self._evidence.pop(table.address, None)
        self._oids[table.address] = table.oid
        return self._tracks[table.address]

    def _read_sent_at(self, connection: Connection, tables: Iterable[QueueTable]) -> None:
        """For heads older than this sampler: TimeSent is the best substitute, marked as an estimate. Read errors are
        retried later; at most one timeout per sample."""
        clock = self._monotonic()
        for table in tables:
            track = self._track(table)
            seq = track.wants_sent_at()
            if seq is None or clock < self._read_again_at.get(table.address, 0.0):
                continue
            try:
                track.note_sent_at(seq, _sent_at(connection, table, seq))
            except DatabaseDown:
                raise
            except DatabaseError as error:
                self._read_again_at[table.address] = clock + FIND_EVERY
                if isinstance(error, TimedOut):
                    return

    def _sample(self, table: QueueTable, at: datetime, found: Found) -> QueueSample:
        looked, delayed = found.get(table.address), found.get(table.delayed) if table.delayed else None
        delayed = delayed if isinstance(delayed, QueueDepth) else None
        size = self._sizes.get(table.oid, table.size_bytes)
        if not isinstance(looked, QueueDepth):
            unread = looked or UnreadTable("")
            return QueueSample(table, at, None, delayed, size_bytes=size, error=unread.error, sqlstate=unread.sqlstate)
        track = self._track(table)
        oldest_at, oldest_how = track.oldest()
        return QueueSample(
            table,
            at,
            looked,
            delayed,
            track.rates.in_per_second,
            track.rates.out_per_second,
            oldest_at,
            oldest_how,
            track.changed_at,
            track.last_departure_at,
            track.low_water_checked_at,
            size,
        )


def _sent_at(connection: Connection, table: QueueTable, seq: int) -> datetime | None:
    """None if the headers lack it. Raises DatabaseError if they cannot be read."""
    text = connection.value(connection.dialect.browse.headers_at(table=table.address), {"seq": seq})
    try:
        return parse_time(wire.parse(text).get(wire.TIME_SENT))
    except wire.HeadersUnreadable:
        return None
