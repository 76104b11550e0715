"""Messages of the lease queue: leased, dead, and as observers see them."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.lease_store import QUEUE, DeadLease, Lease
from pgqueue_admin.lease import payload


class LeasedMessage:
    """``attempts``: how often it was claimed. ``expires_at``: as of the claim, by the database's clock."""

    def __init__(self, lease: Lease):
        self.id: int = lease.id
        self.token: str = lease.token
        self.created_at: datetime = lease.created_at
        self.attempts: int = lease.attempts
        self.expires_at: datetime = lease.expires_at
        self.text: str = lease.message

    @cached_property
    def message(self) -> Any:
        """The message as published. Raises MessageUnreadable: other programs may write JSON that Python cannot
        parse."""
        return payload.read(self.text)

    @property
    def key(self) -> tuple[int, str]:
        return self.id, self.token

    def __repr__(self) -> str:
        return f"<LeasedMessage {self.id}, attempt {self.attempts}, locked until {self.expires_at}>"


# A dead message of the lease queue, as its handler receives it.
class DeadMessage:
    """``result``: rejected, failed or lock_expired. ``archive_id``: its archive row, where it stays. ``given``: how
    often a handler received it, this time included. All else comes from that row."""

    def __init__(self, row: DeadLease):
        self.archive_id, self.given = row.archive_id, row.given
        self.message_id, self.result, self.details = row.message_id, row.result, row.details
        self.exception_type, self.exception_message = row.exception_type, row.exception_message
        self.handled_by, self.attempts = row.handled_by, row.attempts
        self.created_at, self.archived_at = row.created_at, row.archived_at
        self.text = row.message or ""

    @cached_property
    def message(self) -> Any:
        """The message as published. Raises MessageUnreadable: other programs may write JSON that Python cannot
        parse."""
        return payload.read(self.text)

    def __repr__(self) -> str:
        return f"<DeadMessage {self.archive_id}, {self.result}, given {self.given} times>"


# A lease message in flight, as observers see it.
class HeldLeaseMessage(NamedTuple):
    """Implements transport.ports.HeldMessage. ``type``: its kind, empty until known."""

    seq: int
    row_id: str
    message_id: str
    type: str
    queue: Address = QUEUE
    time_to_be_received: timedelta | None = None


def held(lease: LeasedMessage, kind: str | None = None) -> HeldLeaseMessage:
    """A lease message has no permanent UUID: its id, written as one."""
    return HeldLeaseMessage(lease.id, str(UUID(int=lease.id)), str(lease.id), kind or "")
