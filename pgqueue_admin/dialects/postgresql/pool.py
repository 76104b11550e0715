"""Sessions kept open between uses. Whoever borrows one connects it, so that a refusal is told at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg.rows import namedtuple_row

from pgqueue_admin.dialects.postgresql import answering, encodings, meaning, patience
from pgqueue_admin.dialects.postgresql.answering import Raw
from pgqueue_admin.dialects.postgresql.lender import SILENT_SECONDS, Lender
from pgqueue_admin.dialects.postgresql.opening import on_the_wire
from pgqueue_admin.dialects.postgresql.patience import PatientConnection
from pgqueue_admin.dialects.postgresql.session import Session, translated


class SessionPool:
    """A Pool (see dialects.contract)."""

    def __init__(self, dsn: str, kwargs: dict[str, Any], max_size: int, answer_seconds: float | None):
        settings: dict[str, Any] = {**on_the_wire(dsn), **kwargs, "connect_timeout": round(SILENT_SECONDS)}

        def connect() -> Raw:
            raw = PatientConnection.connect(dsn, autocommit=True, row_factory=namedtuple_row, **settings)
            patience.limit(raw, answer_seconds)
            return encodings.fit(meaning.fit(answering.first(raw)))

        self._answer_seconds = answer_seconds
        self._lender = Lender(connect, max_size)

    @contextmanager
    def connection(self, answer_seconds: float | None = None) -> Iterator[Session]:
        with translated:
            raw = self._lender.getconn()
            patience.limit(raw, answer_seconds or self._answer_seconds)
        try:
            yield Session(raw)
        finally:
            self._lender.putconn(raw)

    def close(self) -> None:
        """Those that are lent close when they come back."""
        self._lender.close()
