"""Those who archive while history is read: late, in savepoints, rolled back, or in two phases."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pgqueue_admin.archive import store
from pgqueue_admin.archive.model import DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

PAUSE = 0.02  # seconds at most, between two steps of a writer


class Writer(threading.Thread):
    """Transactions in an order that ``number`` alone decides; how they interleave with others is left to chance."""

    def __init__(self, dsn: str, number: int, goes_on: Callable[[int], bool]):
        super().__init__(name=f"writer {number}", daemon=True)
        self._dsn, self._goes_on = dsn, goes_on
        self._random, self._pause = random.Random(number), threading.Event()

    def run(self) -> None:
        with postgresql().connect(self._dsn) as connection:
            done = 0
            while self._goes_on(done):
                self._transaction(connection)
                done += 1

    def _transaction(self, connection: Connection) -> None:
        connection.run("begin")
        for _ in range(self._random.randint(1, 3)):
            self._died(connection)
            self._wait()
        if self._random.random() < 0.3:
            self._undone(connection)
        self._end(connection)

    def _undone(self, connection: Connection) -> None:
        connection.run("savepoint undone")
        self._died(connection)
        connection.run("rollback to savepoint undone")
        self._died(connection)

    def _end(self, connection: Connection) -> None:
        name, how = uuid4(), self._random.choice(["commit", "commit", "rollback", "in two phases", "given up"])
        if how in {"commit", "rollback"}:
            connection.run(how)
            return
        connection.run(f"prepare transaction '{name}'")
        self._wait()
        connection.run(f"{'commit' if how == 'in two phases' else 'rollback'} prepared '{name}'")

    def _died(self, connection: Connection) -> None:
        """A success: of a death its trigger NOTIFYs, and such a transaction cannot be prepared."""
        store.bury(connection, DeadMessage(queue="q", headers="{}", result="success"))

    def _wait(self) -> None:
        self._pause.wait(self._random.random() * PAUSE)


@contextmanager
def writing(dsn: str, number: int, transactions: int) -> Iterator[list[Any]]:
    """So many writers, each with so many transactions; at the end all have ended."""
    writers = [Writer(dsn, each, lambda done: done < transactions) for each in range(number)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.join()
