"""Protocol of the subscription table, the same for every database."""

from collections.abc import Iterator
from typing import Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.table_fault import TableFault


class SubscriptionStore(Protocol):
    """One subscription table. Queue addresses in it are texts as their endpoints wrote them (wire sheet 4)."""

    address: Address

    def create(self, session: Session) -> None:
        """Create the table if missing; safe for concurrent callers."""

    def faults(self, session: Session) -> Iterator[TableFault]:
        """Defects that make the table unusable; reads the catalog."""

    def subscribe(self, session: Session, endpoint: str, topic: str, queue: str) -> None:
        """Store one row per endpoint and topic; a newer queue replaces the old one."""

    def unsubscribe(self, session: Session, endpoint: str, topic: str) -> None:
        """Delete the subscription, whatever its queue; no effect without one."""

    def subscribers(self, session: Session, topics: list[str]) -> list[str]:
        """The queues subscribed to any of these topics, each spelling once."""
