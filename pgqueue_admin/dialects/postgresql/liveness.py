"""Tests with a timeout whether a session answers: a server's own timeouts do not apply before it has our query."""

import select
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from pgqueue_admin.dialects.postgresql import session_settings

FIRST_SECONDS = 5.0  # for the first answer of a new session

Raw = psycopg.Connection[Any]


def first(raw: Raw, seconds: float = FIRST_SECONDS) -> Raw:
    """Test a new session; without an answer, close it and raise OperationalError.

    A pooler accepts every client, and may have no session for it.
    """
    if answers(raw, seconds):
        return raw
    raw.close()
    raise psycopg.OperationalError(f"no answer to a new session for {seconds:g} s; a pooler may have none left")


def answers(raw: Raw, seconds: float) -> bool:
    """Send an empty query, like the driver's own check, but with a timeout: a frozen server never refuses."""
    return _asked(raw, b"", seconds) is not None


def settings(raw: Raw, seconds: float) -> session_settings.Given | None:
    """The session's present settings, in the round trip that tests it; None without an answer."""
    results = _asked(raw, session_settings.ASK.encode(), seconds) or []
    for result in results:
        if result.ntuples:
            return tuple(result.get_value(0, column) for column in range(result.nfields))
    return None


def _asked(raw: Raw, query: bytes, seconds: float) -> list[PGresult] | None:
    """The results; None without an answer in time, or if the session is not idle afterwards."""
    results: list[PGresult] = []
    try:
        raw.pgconn.send_query(query)
        poll = select.poll()  # select() fails above descriptor 1023, and open streams use many
        poll.register(raw.fileno(), select.POLLIN)
        while True:
            while raw.pgconn.is_busy():
                if not poll.poll(seconds * 1000):
                    return None
                raw.pgconn.consume_input()
            result = raw.pgconn.get_result()
            if result is None:
                return results if is_at_rest(raw) else None
            results.append(result)
    except psycopg.Error:
        return None


def is_at_rest(raw: Raw) -> bool:
    return not raw.closed and raw.info.transaction_status == TransactionStatus.IDLE
