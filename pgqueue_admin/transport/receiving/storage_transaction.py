"""The transaction in which handlers write, with the record of their message."""

from contextlib import AbstractContextManager
from typing import Any

from pgqueue_admin.dialects.connection import Command, Row


class StorageTransaction:
    """Begins with the look for the record, in one round trip; ended by commit or rollback, whichever comes first."""

    def __init__(self, session: Any, finding: Command):
        self.session = session
        self._block: AbstractContextManager[list[Row]] | None = session.transaction_with(*finding)
        self.found = self._block.__enter__()

    def commit(self) -> None:
        block, self._block = self._block, None
        if block:
            block.__exit__(None, None, None)

    def roll_back(self) -> None:
        block, self._block = self._block, None
        if block:
            self.session.roll_back()
