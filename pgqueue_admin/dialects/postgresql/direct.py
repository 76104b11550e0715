"""A session of our own: statements from our files go through libpq itself, all else through psycopg's cursors."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from pgqueue_admin.dialects.connection import Params, Row
from pgqueue_admin.dialects.postgresql.filled import Filled
from pgqueue_admin.dialects.postgresql.libpq import COMMIT, Libpq
from pgqueue_admin.dialects.postgresql.session import Session, translated


class DirectSession(Session):
    """A Connection (see dialects.connection)."""

    def __init__(self, raw: psycopg.Connection[Any]):
        super().__init__(raw)
        self._libpq = Libpq(raw)
        self._is_over = False

    def _ask(self, query: Any, params: Params) -> Any:
        return self._libpq.ask(query, params) if _is_ours(query) else super()._ask(query, params)

    def batch(self, asked: Iterable[tuple[Any, Params]]) -> list[list[Row]]:
        statements = list(asked)
        if not all(_is_ours(query) for query, _ in statements):  # in the driver's pipeline ours would wait for ever
            with self.transaction():
                return [self.all(query, params) for query, params in statements]
        with translated():
            return [answer.fetchall() for answer in self._libpq.ask_all(statements)]

    def run_all(self, asked: Iterable[tuple[Any, Params]]) -> None:
        statements = list(asked)
        with translated():
            if len(statements) == 1:
                self._ask(*statements[0])
            elif statements:
                self._libpq.ask_all(statements)

    def run_each(self, asked: Iterable[tuple[Any, Params]]) -> None:
        with translated():
            self._libpq.ask_each(asked)

    def run_last(self, asked: Iterable[tuple[Any, Params]]) -> None:
        self._refuse_to_pretend()
        with translated():
            self._libpq.ask_all([*asked, (COMMIT, None)])
        self._is_over = True

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        if self.raw.pgconn.transaction_status == TransactionStatus.INTRANS:
            with super().transaction():
                yield self
        else:
            with translated():
                self._libpq.say(b"begin")
                try:
                    yield self
                    self._commit()
                except BaseException:
                    self._roll_back()
                    raise

    @contextmanager
    def transaction_with(self, query: Any, params: Params = None) -> Iterator[list[Row]]:
        if not _is_ours(query):
            with super().transaction_with(query, params) as rows:
                yield rows
            return
        with translated():
            try:
                yield self._libpq.begin_with(query, params).fetchall()
                self._commit()
            except BaseException:
                self._roll_back()
                raise

    def _commit(self) -> None:
        is_over, self._is_over = self._is_over, False
        if is_over:
            return
        self._refuse_to_pretend()
        self._libpq.say(b"commit")

    def _roll_back(self) -> None:
        self._is_over = False
        if not self.raw.closed and self.raw.pgconn.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self._libpq.say(b"rollback")


def _is_ours(query: Any) -> bool:
    return isinstance(query, Filled) and query.is_single
