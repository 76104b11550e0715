"""An outbox table of others, written to with care: anybody may have written its records, which name their destinations.

So records are sent only into known queues, and nothing is written that would run code of others as this console.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple

from pgqueue_admin.archive import foreign_code
from pgqueue_admin.archive.held_row import hold_table, others_code
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.outbox_store import OutboxStore
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models.queue_database import lies_elsewhere, queue_database
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.transport import Endpoint, EndpointSettings
from pgqueue_admin.transport.settings import SettingsRefused
from pgqueue_admin.transport.wire.message import OutgoingMessage

SUFFIX = "OutboxData"


class OutboxClosed(ValueError):
    """The outbox accepts no writes now, for any record."""


class Act(NamedTuple):
    """Codes of an act in the catalog, of triggers and of rules (``runs``, outbox.sql)."""

    trigger: int
    rule: str


MARK, DELETE = Act(16, "2"), Act(8, "4")


class Relayed(NamedTuple):
    """``ids``: records sent. ``refused``: reasons by id. Records locked or sent by others are in neither."""

    ids: list[str]
    messages: int
    refused: dict[str, str]


def engine_for(table: Address) -> Endpoint:
    """Return an endpoint, named after the table, that is never started. Raises SettingsRefused."""
    if not table.table.endswith(SUFFIX):
        raise SettingsRefused([f"Nothing is sent from {table.table}: its name does not end with {SUFFIX}."])
    prefix = table.table.removesuffix(SUFFIX)
    settings = EndpointSettings(transaction_mode="receive_only", outbox=Outbox(prefix=prefix))
    name = prefix.rstrip("_") or table.table
    return Endpoint(name, queue_database().dsn, settings=settings, schema=table.schema)


class CheckedOutbox:
    """Writes lock the table first, so that nobody adds a trigger between the check and the write."""

    def __init__(self, outbox: EndpointOutbox, table: Address):
        self._outbox, self.table = outbox, table

    def __str__(self) -> str:
        return str(self._outbox)

    @property
    def store(self) -> OutboxStore:
        return self._outbox.store

    def relay(self, session: Connection, record_id: str) -> int | None:
        """Send one record; return how many messages; None: it was sent, or is gone. Raises ValueError if refused."""
        with session.transaction():
            self._hold(session, MARK)
            row = session.one(*self._outbox.finding(record_id))
            if row is None or row.dispatched:
                return None
            outgoing = self._send(session, row)
        self._outbox.dispatched(outgoing)
        return len(outgoing)

    def relay_those(self, session: Connection, ids: Collection[str]) -> Relayed:
        """Send all of these records that wait and are not locked, in one transaction. Raises OutboxClosed."""
        sent, refused = dict[str, list[OutgoingMessage]](), dict[str, str]()
        with session.transaction():
            self._hold(session, MARK)
            for row in session.all(postgresql().outbox.hold_pending(table=self.table), {"ids": list(ids)}):
                try:
                    with session.transaction():
                        sent[row.id] = self._send(session, row)
                except DatabaseDown:
                    raise
                except (DatabaseError, ValueError) as error:
                    refused[row.id] = str(error)
        for outgoing in sent.values():
            self._outbox.dispatched(outgoing)
        return Relayed(list(sent), sum(map(len, sent.values())), refused)

    def clean(self, session: Connection, keep: timedelta, most: int) -> int:
        """Delete up to ``most`` records dispatched longer than ``keep`` ago. Raises OutboxClosed."""
        with session.transaction():
            self._hold(session, DELETE)
            return self._outbox.store.purge(session, keep, most)

    def _hold(self, session: Connection, act: Act) -> None:
        hold_table(session, self.table)
        found = outboxes.find(session, [self.table.schema])
        table = next((each for each in found if each.address == self.table), None)
        if table is None or table.why_unread:
            raise OutboxClosed(table.why_unread if table else "it is no outbox table any more")
        named = {"schema": self.table.schema, "name": self.table.table, **act._asdict()}
        if why := others_code(session.value(postgresql().outbox.runs(), named) or ()):
            raise OutboxClosed(why)

    def _send(self, session: Connection, row: Any) -> list[OutgoingMessage]:
        """Send exactly the messages that were judged, even if the record changes meanwhile."""
        outgoing = self._outbox.undispatched(row)
        if why := _blocking_reason(session, outgoing):
            raise ValueError(why)
        self._outbox.send_these(session, row.id, outgoing)
        return outgoing


def _blocking_reason(session: Connection, outgoing: list[OutgoingMessage]) -> str:
    """Why these messages are not sent. The original's outbox holds audit copies, too: so audit queues are allowed."""
    if any(each.delay is not None for each in outgoing):
        return "it sends delayed messages, which its own endpoint alone keeps back"
    if beyond := next((why for each in outgoing if (why := lies_elsewhere(each.destination))), ""):
        return beyond  # before that database is queried while records here are locked
    judged = judge(session, [each.destination for each in outgoing]).values()
    chosen = [each.address for each in judged if each.takes_copies]
    found = next((why for each in judged if (why := each.refusal_by_hand(chosen))), "")
    asked = dict.fromkeys(each.destination for each in outgoing)
    held = (foreign_code.would_run(session, each, foreign_code.INSERT) for each in asked)
    return found or next(filter(None, held), "")  # again: a trigger may have been added since
