"""Writers that archive while history is read: late, in savepoints, rolled back, or in two phases."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pgqueue_admin.archive import store
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from tests.history.shop_messages import ShopMessages

NAME = "writer"  # of their sessions
PAUSE = 0.02  # seconds at most, between two steps of a writer


class Writer(threading.Thread):
    """``number`` alone determines its transactions; how they interleave with others is left to chance."""

    def __init__(self, dsn: str, number: int, goes_on: Callable[[int], bool]):
        super().__init__(name=f"writer {number}", daemon=True)
        self._dsn, self._goes_on = dsn, goes_on
        self._random, self._pause = random.Random(number), threading.Event()
        self._messages = ShopMessages(self._random)

    def run(self) -> None:
        with postgresql().connect(self._dsn, application_name=NAME, for_handlers=True) as connection:
            done = 0
            while self._goes_on(done):
                self._transaction(connection)
                done += 1

    def _transaction(self, connection: Connection) -> None:
        """Its end is chosen first: a death's trigger uses NOTIFY, and such a transaction cannot be prepared."""
        how = self._random.choice(["commit", "commit", "rollback", "in two phases", "given up"])
        may_fail = how in {"commit", "rollback"}
        connection.run("begin")
        for _ in range(self._random.randint(1, 3)):
            self._died(connection, may_fail)
            self._wait()
        if self._random.random() < 0.3:
            self._undone(connection, may_fail)
        self._end(connection, how)

    def _undone(self, connection: Connection, may_fail: bool) -> None:
        connection.run("savepoint undone")
        self._died(connection, may_fail)
        connection.run("rollback to savepoint undone")
        self._died(connection, may_fail)

    def _end(self, connection: Connection, how: str) -> None:
        if how in {"commit", "rollback"}:
            connection.run(how)
            return
        name = uuid4()
        connection.run(f"prepare transaction '{name}'")
        self._wait()
        connection.run(f"{'commit' if how == 'in two phases' else 'rollback'} prepared '{name}'")

    def _died(self, connection: Connection, may_fail: bool) -> None:
        store.archive_failed(connection, self._messages.next(may_fail))

    def _wait(self) -> None:
        self._pause.wait(self._random.random() * PAUSE)


@contextmanager
def writing(dsn: str, number: int, transactions: int) -> Iterator[list[Any]]:
    """Run so many writers with so many transactions each; all have ended at the end."""
    with _at_work(dsn, number, lambda done: done < transactions) as writers:
        yield writers


@contextmanager
def writing_on(dsn: str, number: int) -> Iterator[None]:
    """Run so many writers for the duration."""
    over = threading.Event()
    with _at_work(dsn, number, lambda _: not over.is_set()):
        try:
            yield
        finally:
            over.set()


@contextmanager
def _at_work(dsn: str, number: int, goes_on: Callable[[int], bool]) -> Iterator[list[Any]]:
    writers = [Writer(dsn, each, goes_on) for each in range(number)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.join()
