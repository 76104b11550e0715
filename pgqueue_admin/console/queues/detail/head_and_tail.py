"""Head, tail and the seq ruler: read from the queue itself after the page, with time limits of their own (C2, C3)."""

from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache

from pgqueue_admin.alerts import table_faults
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.formatting.numbers import format_figure, format_int, pluralize
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.queue_database import database_of
from pgqueue_admin.models.queue_overview import Newest
from pgqueue_admin.monitor import browse, discovery, seq_occupancy
from pgqueue_admin.monitor.depth import LATE
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable

LOOK_SECONDS = 1.0
RULER_EVERY = 10  # seconds: 96 probes a look are cheap, not free


@dataclass(frozen=True, slots=True)
class HeadAndTail:
    table: QueueTable
    first: list[WaitingMessage]
    last: list[WaitingMessage]
    steps: list[bool] | None
    now: datetime
    latest: Newest | None
    sees_locked_rows: bool = True

    @property
    def shown(self) -> int:
        return len(self.first) + len(self.last)

    @property
    def between(self) -> str:
        """How many messages are between them, as far as the newest sample knows."""
        rest = (self.depth or 0) - self.shown
        return f"{format_figure(rest, self.how)} {'message' if rest == 1 else 'messages'} between" if rest > 0 else ""

    @property
    def head(self) -> WaitingMessage | None:
        return self.first[0] if self.first else None

    @property
    def tail(self) -> WaitingMessage | None:
        return (self.last or self.first)[-1] if self.first else None

    @property
    def span(self) -> int:
        return self.tail.seq - self.head.seq + 1 if self.head and self.tail else 0

    @property
    def is_all(self) -> bool:
        """Whether head and tail meet, with nothing between."""
        return len(self.last) < TAIL

    @property
    def depth(self) -> int | None:
        """Number of rows: what was read if that is all, else the sampled depth, bounded by the rows read and the span.

        The newest sample may be older than what was read.
        """
        if self.is_all:
            return self.shown
        known = self.latest.depth if self.latest else None
        return None if known is None else max(min(known, self.span), self.shown)

    @property
    def how(self) -> str:
        """How ``depth`` is known. ``capped``: at least so many, as more were read than the newest sample counted.
        ``estimate``: about so many, as it counted more than the span has numbers.
        """
        if self.is_all or self.latest is None:
            return "counted"
        known = self.latest.depth or 0
        if known > self.span:
            return "estimate"
        return "capped" if known < self.shown else self.latest.how

    @property
    def sentence(self) -> str:
        """Says what the span is (T10), explains the gap, and names what a reader of the span would report (C2)."""
        depth = self.depth
        if depth is None or not self.span:
            return ""
        return f"The span is tail − head + 1, so that one message alone is 1. {self._gap(self.span - depth)}"

    def _gap(self, missing: int) -> str:
        if self.how != "counted":
            return f"A tool that takes this span for the depth reports {format_int(self.span)}."
        if missing <= 0:
            return "No number is missing: here the span is the depth."
        return (
            f"{pluralize(missing, 'number')} between head and tail {'holds' if missing == 1 else 'hold'} no message: "
            f"{'' if self.sees_locked_rows else 'in flight, '}handled already, or never committed. "
            f"A tool that takes this span for the depth reports {format_int(self.span)}."
        )


HEAD, TAIL = 4, 2


def faults(address: Address, kind: str) -> list[TableFault]:
    """Columns and indexes that it lacks. Raises DatabaseError."""
    of = database_of(address)
    with of.read_session(address) as connection:
        return table_faults.faults(of, connection, address, kind)


def look(address: Address, latest: Newest | None) -> HeadAndTail | None:
    """None if the table is gone or holds no messages. Raises DatabaseError, also TimedOut."""
    with database_of(address).read_session(address) as connection:
        table = discovery.readable(connection, address)
        if table is None or not table.has_messages:
            return None
        low = latest.head_seq - LATE if latest and latest.head_seq is not None else None
        first, last = browse.head_and_tail(connection, table, head=HEAD, tail=TAIL, low_water=low, timeout=LOOK_SECONDS)
        steps = _ruler(connection, table, first, last)
        seen = connection.dialect.sees_locked_rows
        return HeadAndTail(table, first, last, steps, database_clock.now(), latest, seen)


def _ruler(
    connection: Connection, table: QueueTable, first: list[WaitingMessage], last: list[WaitingMessage]
) -> list[bool] | None:
    if len(first) < HEAD:
        return None  # few rows need no picture
    key = f"ruler:{database_of(table.address).alias}:{table.oid}"  # names may hold characters that cache keys may not
    known = cache.get(key)
    if known is None:
        known = (seq_occupancy.steps(connection, table, first[0].seq, (last or first)[-1].seq),)
        cache.set(key, known, RULER_EVERY)
    steps: list[bool] | None = known[0]
    return steps
