"""Switches that a person sets for an outbox table of others: sending by hand, relay, clean-up. Each is audited."""

from typing import Any

from django.db import transaction

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.models import AuditEntry, ForeignOutbox
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.services.outbox.checked_outbox import CheckedOutbox
from pgqueue_admin.services.permissions import name_of, refusal_for

MINUTE, DAY = 60, 86_400
RELAY_AFTER = 5 * MINUTE  # default
KEEP = 7 * DAY  # default, as in the original
RELAY_LIMITS, KEEP_LIMITS = (MINUTE, DAY), (DAY, 3650 * DAY)


class ByHandOutbox(CheckedOutbox):
    """Implements acts.DispatchableOutbox while a person allows it."""

    def relay(self, session: Connection, record_id: str) -> int | None:
        if not dispatch_allowed(self.table):
            raise ValueError("sending from this outbox is switched off")
        return super().relay(session, record_id)


def decided(table: Address) -> ForeignOutbox | None:
    return ForeignOutbox.objects.filter(schema=table.schema, table=table.table).first()


def dispatch_allowed(table: Address) -> bool:
    """Whether sending by hand is allowed from an outbox that no endpoint of ours writes to."""
    row = decided(table)
    return row is not None and row.dispatch_allowed


def allow_dispatch(table: Address, allowed: bool, person: Any, origin: str, reason: str = "") -> bool:
    """Allow or forbid sending by hand; return whether this changed. Raises OperationNotAllowed."""
    return _change(table, {"dispatch_allowed": allowed}, person, origin, reason)


def keep(
    table: Address, relay_seconds: int | None, keep_seconds: int | None, person: Any, origin: str, reason: str = ""
) -> bool:
    """Switch relay and clean-up on, with these times, or off; return whether anything changed.

    Raises OperationRefused, or DatabaseError if the database cannot be identified.
    """
    _insist("Its relay sends what waits longer than", relay_seconds, RELAY_LIMITS)
    _insist("Its clean-up keeps records for", keep_seconds, KEEP_LIMITS)
    database = this_database() if relay_seconds or keep_seconds else ""
    wanted = {"relay_seconds": relay_seconds, "keep_seconds": keep_seconds, "database": database}
    return _change(table, wanted, person, origin, reason)


def this_database() -> str:
    """Identify this database: a table of the same name in another one is not the same. Raises DatabaseError."""
    with queue_database().read_session() as connection:
        return here(connection)


def here(connection: Connection) -> str:
    """Raises DatabaseError."""
    return str(connection.all(postgresql().alerts.here())[0].database)


def _insist(what: str, seconds: int | None, limits: tuple[int, int]) -> None:
    least, most = limits
    if seconds is not None and not least <= seconds <= most:
        raise OperationRefused(f"Nothing was changed: {what} {plain(least)} at least, and {plain(most)} at most.")


def _change(table: Address, wanted: dict[str, Any], person: Any, origin: str, reason: str) -> bool:
    if refusal := refusal_for(person, "set"):
        raise OperationNotAllowed(f"Nothing was changed: {refusal}.")
    with transaction.atomic():
        row, _ = ForeignOutbox.objects.select_for_update().get_or_create(schema=table.schema, table=table.table)
        before = {name: getattr(row, name) for name in wanted}
        if before == wanted:
            return False
        ForeignOutbox.objects.filter(pk=row.pk).update(**wanted, trouble="")
        about = {"who": name_of(person), "origin": origin, "reason": reason, "before": before, "after": wanted}
        AuditEntry.objects.create(verb="set", noun="outbox", subject=postgresql().canonical(table)[:400], **about)
    return True
