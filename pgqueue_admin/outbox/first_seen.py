"""Ages of records in a table that does not store them: measured since they were first seen."""

import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Protocol

from pgqueue_admin.dialects import Address, Connection


class FirstSeen(Protocol):
    """Ages for the relay of a table without ``CreatedAt``. Called without locks held."""

    def ages(self, session: Connection, table: Address, records: Collection[str]) -> Mapping[str, timedelta]:
        """Ages of all waiting records; those seen for the first time are left out.

        ``session``: of the table's database. Raises DatabaseDown if that is lost.
        """


class SeenByThisProcess:
    """Implements FirstSeen. A restart forgets all ages."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # of one table: an outbox has one

    def ages(self, session: Connection, table: Address, records: Collection[str]) -> dict[str, timedelta]:
        now = time.monotonic()
        self._since = {each: self._since.get(each, now) for each in records}
        return {each: timedelta(seconds=now - since) for each, since in self._since.items()}
