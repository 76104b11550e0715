"""A queue table on PostgreSQL (contract: dialects.queue_store.QueueStore)."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, repeat
from struct import Struct
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.errors import AlreadyExists, DatabaseError
from pgqueue_admin.dialects.postgresql import binary_copy, body_column, table_exists
from pgqueue_admin.dialects.postgresql.table_checks import ExpectedTable
from pgqueue_admin.dialects.queue_store import LOWEST, PeekResult, QueueRow
from pgqueue_admin.dialects.statements import StatementFolder
from pgqueue_admin.dialects.table_fault import TableFault

PURGE_CHUNK = 10_000
NOT_BY_COPY = ("42809", "0A000")  # COPY into views, and with row policies
_AHEAD = 128  # ids drawn at a time: each draw releases the GIL to other threads
_VERSION, _VARIANT = (bytes(number & mask | bit for number in range(256)) for mask, bit in ((0x0F, 0x40), (0x3F, 0x80)))
_sixteen = Struct("16s").iter_unpack


class PostgreSQLQueue:
    """Every method but purge runs in the caller's transaction, some in a savepoint of it."""

    def __init__(self, sql: StatementFolder, address: Address):
        self.address = address
        self._folder = sql
        self._sql = sql.queue
        self._send = self._sql.send(table=address)
        self._peek = self._sql.peek(table=address)
        self._receives = {1: self._sql.receive(table=address)}

    def create(self, session: Session) -> None:
        table_exists.create(session, self._folder, self.address, self._sql.create(table=self.address))

    def add_body_column(self, session: Session) -> None:
        body_column.add(session, self._folder, self.address)

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        return ExpectedTable(session, self._folder, self.address).as_queue(readable)

    def insertions(self, rows: Sequence[QueueRow]) -> list[Command]:
        if len(rows) == 1:
            headers, body, ttbr_ms = rows[0]
            return [(self._send, {"id": None, "ttbr_ms": ttbr_ms, "headers": headers, "body": body})]
        return [(self._sql.send_many(table=self.address), _columns(rows))]

    def load(self, session: Any, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        """Load by COPY. In a transaction, a time to be received counts from its start, as with an insert."""
        query = self._sql.load(table=self.address)
        try:
            with session.transaction() if spans or session.in_transaction else nullcontext():
                session.copy_rows(query, _as_copied(rows, self._expiries(session, spans)))
        except DatabaseError as refused:
            if refused.sqlstate not in NOT_BY_COPY:
                raise
            return False
        return True

    def _expiries(self, session: Session, spans: Collection[int]) -> dict[int, int]:
        """The expiry time of each span by the server's clock, in microseconds since 2000."""
        found = session.all(self._sql.expiries(), {"ttbrs_ms": list(spans)}) if spans else []
        return {row.ttbr_ms: row.expires for row in found}

    def send_as_it_is(self, session: Session, row_id: str, headers: str, body: bytes) -> None:
        """A row copied back from an error queue duplicates its id. We try the insert instead of looking: a role that
        may only send cannot read.
        """
        row = {"id": row_id, "ttbr_ms": None, "headers": headers, "body": body}
        try:
            with session.transaction():
                session.run(self._send, row)
        except AlreadyExists:
            session.run(self._send, row | {"id": None})

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        found = self._receives.get(most)
        if found is None:
            found = self._receives[most] = self._sql.receive_many(table=self.address, most=most)
        return found, {"low": low}

    def is_received(self, session: Session, row: Any) -> bool:
        """Look up the outcome of the transaction whose id the batch's rows carry."""
        return bool(session.value(self._sql.is_committed(), {"xact": row.xact}))

    def peek(self, session: Session) -> PeekResult:
        """Peek by the seq range: two index probes, however many rows there are; locks both rows briefly."""
        row = session.one(self._peek)
        if not row:
            return PeekResult(0, LOWEST)
        return PeekResult(row.pending, LOWEST if row.head is None else row.head)

    def purge(self, session: Session, expired_only: bool = False) -> int:
        statement = self._sql.purge_expired if expired_only else self._sql.purge
        query, purged, after = statement(table=self.address, most=PURGE_CHUNK), 0, LOWEST
        while chunk := session.one(query, {"after": after}):
            purged, after = purged + chunk.rows, chunk.last
            if chunk.rows < PURGE_CHUNK:
                break
        return purged


def _columns(rows: Sequence[QueueRow]) -> dict[str, object]:
    headers, bodies, spans = zip(*rows, strict=True)
    never = spans.count(None) == len(spans)  # then an empty list: the statement reads missing items as null
    return {"ttbrs_ms": [] if never else list(spans), "headers": list(headers), "bodies": list(bodies)}


def _as_copied(rows: Iterable[QueueRow], expiries: dict[int, int]) -> Iterator[binary_copy.Row]:
    for (headers, body, ttbr_ms), row_id in zip(rows, _row_ids(), strict=False):
        yield row_id, None if ttbr_ms is None else expiries[ttbr_ms], headers, body


def _row_ids() -> Iterator[bytes]:
    """Endless random UUIDs, as sixteen bytes each."""
    return chain.from_iterable(chain.from_iterable(map(_drawn, repeat(_AHEAD))))


def _drawn(count: int) -> Iterable[tuple[bytes]]:
    drawn = bytearray(os.urandom(16 * count))
    for place, made in ((6, _VERSION), (8, _VARIANT)):
        drawn[place::16] = drawn[place::16].translate(made)
    return _sixteen(drawn)
