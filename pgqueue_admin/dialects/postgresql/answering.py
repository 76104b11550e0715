"""Whether a session answers, with an end to the waiting: no limit of the server's counts where it never heard of us."""

import select
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

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
    try:
        raw.pgconn.send_query(b"")
        poll = select.poll()  # select() takes no descriptor above 1023, and open streams use them up
        poll.register(raw.fileno(), select.POLLIN)
        while True:
            while raw.pgconn.is_busy():
                if not poll.poll(seconds * 1000):
                    return False
                raw.pgconn.consume_input()
            if not raw.pgconn.get_result():  # while busy it would wait for ever, and hold up all other threads
                return is_at_rest(raw)
    except psycopg.Error:
        return False


def is_at_rest(raw: Raw) -> bool:
    return not raw.closed and raw.info.transaction_status == TransactionStatus.IDLE
