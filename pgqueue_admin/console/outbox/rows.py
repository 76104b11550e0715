"""Outboxes as their pages show them: whose each is, what waits, how far clean-up has come, and what to do."""

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import durations
from pgqueue_admin.formatting.numbers import format_int, pluralize
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.monitor.outboxes import COUNTED_TO, OutboxFigures, OutboxTable
from pgqueue_admin.transport.wire import headers as h

GRACE = timedelta(minutes=1)  # of an outbox whose endpoint does not say another
_BEHIND = timedelta(hours=1)  # clean-up may be so late without a word


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """``endpoint``: the one of ours that writes there; None: a foreign table, which is only looked at."""

    figures: OutboxFigures
    endpoint: Endpoint | None
    now: datetime

    @property
    def address(self) -> Address:
        return self.figures.table.address

    @property
    def name(self) -> str:
        """The endpoint's, or what the table is called by."""
        return self.endpoint.name if self.endpoint else self.address.table.removesuffix("OutboxData").rstrip("_")

    @property
    def pending(self) -> str:
        count = self.figures.pending
        return f"{format_int(COUNTED_TO)}+" if count > COUNTED_TO else format_int(count)

    @property
    def grace(self) -> timedelta:
        seconds = self.endpoint.outbox_relay_seconds if self.endpoint else None
        return timedelta(seconds=seconds) if seconds else GRACE

    @property
    def age(self) -> timedelta | None:
        """How long the oldest waits; None where nothing does, or the table does not say."""
        since = self.figures.oldest_pending
        return self.now - since if since else None

    @property
    def is_stuck(self) -> bool:
        """What waits longer than its relay would let it."""
        return bool(self.figures.pending) and (self.age is None or self.age > 2 * self.grace)

    @property
    def behind(self) -> timedelta | None:
        """How late clean-up is; None where that is not known, or it is not late."""
        if not self.endpoint or not self.figures.oldest_kept or self.endpoint.outbox_clean_seconds is None:
            return None
        late = self.now - self.figures.oldest_kept - timedelta(seconds=self.endpoint.outbox_keep_seconds)
        return late if late > _BEHIND else None

    @property
    def behind_said(self) -> str:
        return durations.duration(self.behind.total_seconds()) if self.behind else ""

    @property
    def age_said(self) -> str:
        return durations.duration(self.age.total_seconds()) if self.age else ""

    @property
    def tone(self) -> str:
        if self.is_stuck and self.endpoint:
            return "crit"
        return (
            "warn" if self.is_stuck or self.behind or self.figures.unread or self.figures.table.missing_indexes else ""
        )


def load(connection: Connection) -> list[OutboxRow]:
    """Stuck ones of ours first, then by what waits, then by name. Raises DatabaseError."""
    of = queue_database()
    found = outboxes.find(connection, list(of.schemas))
    owners, now = _owners(), outboxes.now(connection)
    rows = [OutboxRow(outboxes.measure(connection, each), owners.get(each.address), now) for each in found]
    return sorted(rows, key=lambda row: (row.tone != "crit", row.tone != "warn", -row.figures.pending, row.name))


def _owners() -> dict[Address, Endpoint]:
    """By the address of their table: endpoints of ours that have an outbox now."""
    owners = {}
    for row in Endpoint.objects.filter(ours=True).exclude(outbox=Endpoint.Outbox.OFF):
        try:
            owners[queue_database().dialect.outbox_address(row.name, row.schema)] = row
        except AddressUnreadable:
            continue
    return owners


def one(connection: Connection, address: Address) -> OutboxRow | None:
    """None: there is no such table, or it may not be looked at. Raises DatabaseError."""
    table = table_of(connection, address)
    if table is None:
        return None
    now = outboxes.now(connection)
    return OutboxRow(outboxes.measure(connection, table), _owners().get(address), now)


def table_of(connection: Connection, address: Address) -> OutboxTable | None:
    found = outboxes.find(connection, list(queue_database().schemas))
    return next((each for each in found if each.address == address and each.may_read), None)


def verdict(rows: list[OutboxRow]) -> tuple[str, str]:
    """Its state and its sentence."""
    stuck = [row for row in rows if row.is_stuck]
    if ours := [row for row in stuck if row.endpoint]:
        return "crit", f"{_sends(ours)} of {_names(ours)} {_are(ours)} committed and not sent"
    if stuck:
        return "warn", f"{_sends(stuck)} of {_names(stuck)} {_are(stuck)} committed and not sent, by programs of others"
    if late := [row for row in rows if row.behind]:
        return "warn", f"Clean-up of {_names(late)} is behind"
    if unread := [row for row in rows if row.figures.unread]:
        return "warn", f"{pluralize(len(unread), 'outbox', 'outboxes')} cannot be read"
    return ("ok", "Nothing is stuck between commit and send") if rows else ("", "No outbox")


def _sends(rows: list[OutboxRow]) -> str:
    count = sum(row.figures.pending for row in rows)
    capped = any(row.figures.pending > COUNTED_TO for row in rows)
    return f"At least {pluralize(count, 'record')}" if capped else pluralize(count, "record")


def _are(rows: list[OutboxRow]) -> str:
    return "is" if sum(row.figures.pending for row in rows) == 1 else "are"


def _names(rows: list[OutboxRow]) -> str:
    first = [row.name for row in rows[:3]]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return ", ".join(first) + more


def operations_of(text: str) -> list[dict[str, Any]] | None:
    """What a record is to send, a line each, as its page shows it; None: it cannot be read."""
    try:
        found = orjson.loads(text)
        return [
            {
                "id": str(each["MessageId"]),
                "type": (h.types_in(str(each.get("Headers", {}).get(h.ENCLOSED_MESSAGE_TYPES) or "")) or ("",))[0],
                "kind": "publish" if "EventType" in each.get("Options", {}) else "send",
                "to": str(each.get("Options", {}).get("Destination", "")),
                "when": _when(each.get("Options", {})),
                "size": len(base64.b64decode(each.get("Body") or "")),
            }
            for each in found
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _when(options: dict[str, Any]) -> str:
    if "DelayDeliveryFor" in options:
        return f"delayed by {options['DelayDeliveryFor']}"
    return f"at {options['DeliverAt']}" if "DeliverAt" in options else "at once"
