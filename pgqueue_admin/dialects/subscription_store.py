"""What the engine asks of the table that says who wants which events, whatever the database."""

from collections.abc import Iterator
from typing import Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.table_fault import TableFault


class SubscriptionStore(Protocol):
    """One routing table. Queue addresses in it are texts, as their endpoints wrote them (wire sheet 4)."""

    address: Address

    def create(self, session: Session) -> None:
        """Where it is missing; safe beside others who create it at the same moment."""

    def faults(self, session: Session) -> Iterator[TableFault]:
        """What keeps it from being one; reads the catalog."""

    def subscribe(self, session: Session, endpoint: str, topic: str, queue: str) -> None:
        """One row per endpoint and topic; the newest queue replaces the one before."""

    def unsubscribe(self, session: Session, endpoint: str, topic: str) -> None:
        """Whatever its queue is; nothing happens where it is not subscribed."""

    def subscribers(self, session: Session, topics: list[str]) -> list[str]:
        """The queues that want one of these, each spelling once."""
