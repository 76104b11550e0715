"""Messages of the lease queue: locked, dead, and as observers are told of one in flight."""

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
        """As published. Raises MessageUnreadable: anybody may have written what Python cannot read."""
        return payload.read(self.text)

    @property
    def key(self) -> tuple[int, str]:
        return self.id, self.token

    def __repr__(self) -> str:
        return f"<LeasedMessage {self.id}, attempt {self.attempts}, locked until {self.expires_at}>"


# A dead message of the lease queue, as a handler of the dead gets it.
class DeadMessage:
    """``result``: rejected, failed or lock_expired. ``archive_id``: of its row in the archive, where it stays.
    ``given``: how often it was given to a handler of the dead, this time too. The rest is of its row there.
    """

    def __init__(self, row: DeadLease):
        self.archive_id, self.given = row.archive_id, row.given
        self.message_id, self.result, self.details = row.message_id, row.result, row.details
        self.exception_type, self.exception_message = row.exception_type, row.exception_message
        self.handled_by, self.attempts = row.handled_by, row.attempts
        self.created_at, self.archived_at = row.created_at, row.archived_at
        self.text = row.message or ""

    @cached_property
    def message(self) -> Any:
        """As published. Raises MessageUnreadable: anybody may have written what Python cannot read."""
        return payload.read(self.text)

    def __repr__(self) -> str:
        return f"<DeadMessage {self.archive_id}, {self.result}, given {self.given} times>"


# What observers are told of a lease message in flight.
class HeldLeaseMessage(NamedTuple):
    """Implements transport.ports.HeldMessage. ``type``: its kind, empty as long as that is not known."""

    seq: int
    row_id: str
    message_id: str
    type: str
    queue: Address = QUEUE
    time_to_be_received: timedelta | None = None


def held(lease: LeasedMessage, kind: str | None = None) -> HeldLeaseMessage:
    """A lease has no UUID that stays: its id, written as one."""
    return HeldLeaseMessage(lease.id, str(UUID(int=lease.id)), str(lease.id), kind or "")
