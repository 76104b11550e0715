"""A dead message of the lease queue, as a handler of the dead gets it."""

from functools import cached_property
from typing import Any

from pgqueue_admin.dialects.lease_store import DeadLease
from pgqueue_admin.lease import payload


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
