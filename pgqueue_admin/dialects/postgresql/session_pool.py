"""A pool of open sessions. The borrower connects, so that a refused connection is reported at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg.rows import namedtuple_row

from pgqueue_admin.dialects import deadline
from pgqueue_admin.dialects.postgresql import answer_limit, encodings, liveness, session_settings
from pgqueue_admin.dialects.postgresql.answer_limit import PatientConnection
from pgqueue_admin.dialects.postgresql.connect_options import on_the_wire
from pgqueue_admin.dialects.postgresql.driver_pool import SILENT_SECONDS, WAIT_SECONDS, ConnectionPool
from pgqueue_admin.dialects.postgresql.liveness import Raw
from pgqueue_admin.dialects.postgresql.prepared_session import PreparedSession
from pgqueue_admin.dialects.postgresql.session import Session, translated


class SessionPool:
    """A Pool (``dialects.base``)."""

    def __init__(
        self,
        dsn: str,
        kwargs: dict[str, Any],
        max_size: int,
        answer_seconds: float | None,
        looks: bool = False,
        seconds: float | None = None,
        *,
        dialect: Any,
    ):
        settings: dict[str, Any] = {**on_the_wire(dsn), **kwargs, "connect_timeout": round(SILENT_SECONDS)}

        def connect() -> Raw:
            raw = PatientConnection.connect(dsn, autocommit=True, row_factory=namedtuple_row, **settings)
            answer_limit.limit(raw, answer_seconds)
            encodings.fit(session_settings.alone(session_settings.fit(liveness.first(raw))))
            return session_settings.only_looking(raw) if looks else raw

        self._answer_seconds, self._seconds, self._dialect = answer_seconds, seconds, dialect
        self._lender = ConnectionPool(connect, max_size)
        self._looking: dict[Raw, PreparedSession] = {}  # each with its prepared statements

    @contextmanager
    def connection(self, answer_seconds: float | None = None) -> Iterator[Session]:
        with translated:
            raw = self._lender.getconn(min(WAIT_SECONDS, deadline.left()))
            answer_limit.limit(raw, answer_seconds or self._answer_seconds)
        try:
            session = self._looker(raw) if raw.read_only and isinstance(raw, PatientConnection) else Session(raw)
            session.dialect = self._dialect
            yield session
        finally:
            self._lender.putconn(raw)

    def _looker(self, raw: PatientConnection) -> PreparedSession:
        if raw not in self._looking:
            for gone in [each for each in list(self._looking) if each.closed]:
                self._looking.pop(gone, None)
            self._looking[raw] = PreparedSession(raw, self._seconds)
        return self._looking[raw]

    def close(self) -> None:
        """Close the pool; lent sessions are closed on return."""
        self._lender.close()
