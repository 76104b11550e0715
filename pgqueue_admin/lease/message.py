"""A message that is locked: whoever has its token may end it, as long as the lock lasts."""

from datetime import datetime
from functools import cached_property
from typing import Any

from pgqueue_admin.dialects.lease_store import Lease
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
