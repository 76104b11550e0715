"""Whether a session answers, with an end to the waiting: no limit of the server's counts where it never heard of us."""

import select
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from pgqueue_admin.dialects.postgresql import session_settings

FIRST_SECONDS = 5.0  # for the first answer of a new session

Raw = psycopg.Connection[Any]


def first(raw: Raw, seconds: float = FIRST_SECONDS) -> Raw:
    """Closed, and OperationalError, where none comes: a pooler lets everybody in, and may have no session for them."""
    if answers(raw, seconds):
        return raw
    raw.close()
    raise psycopg.OperationalError(f"no answer to a new session for {seconds:g} s; a pooler may have none left")


def answers(raw: Raw, seconds: float) -> bool:
    """Asked for nothing, as a driver's own check, but with a limit: a frozen server never says no."""
    return _asked(raw, b"", seconds) is not None


def settings(raw: Raw, seconds: float) -> session_settings.Given | None:
    """What it is set to now, in the round trip that tells whether it answers; None where it does not."""
    results = _asked(raw, session_settings.ASK.encode(), seconds) or []
    for result in results:
        if result.ntuples:
            return tuple(result.get_value(0, column) for column in range(result.nfields))
    return None


def _asked(raw: Raw, query: bytes, seconds: float) -> list[PGresult] | None:
    """None where no answer came in time, or the session is not at rest after it."""
    results: list[PGresult] = []
    try:
        raw.pgconn.send_query(query)
        poll = select.poll()  # select() takes no descriptor above 1023, and open streams use them up
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
