"""Since when records wait in a table that does not say it: as they were seen first."""

import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Protocol

from pgqueue_admin.dialects import Address, Connection


class FirstSeen(Protocol):
    """What the relay of a table without ``CreatedAt`` asks. It holds no lock meanwhile."""

    def ages(self, session: Connection, table: Address, records: Collection[str]) -> Mapping[str, timedelta]:
        """For how long each of these, which are all that wait, is seen; what is seen now for the first time: nothing.

        ``session``: of the table's database. Raises DatabaseDown where that is gone.
        """


class SeenByThisProcess:
    """Implements FirstSeen. A restart begins anew."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # of one table: an outbox has one

    def ages(self, session: Connection, table: Address, records: Collection[str]) -> dict[str, timedelta]:
        now = time.monotonic()
        self._since = {each: self._since.get(each, now) for each in records}
        return {each: timedelta(seconds=now - since) for each, since in self._since.items()}
