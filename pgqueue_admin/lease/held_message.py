"""What observers are told of a lease message in hand."""

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.lease.message import LeasedMessage


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
