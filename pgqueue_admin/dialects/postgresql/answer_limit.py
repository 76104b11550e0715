"""Answer timeout of sessions: a watchdog thread closes the connection of an unresponsive server.

Nothing else notices a lost server behind a host that still runs, e.g. behind a relay or a stopped pooler: that host's
kernel keeps acknowledging, so neither keepalives nor ``tcp_user_timeout`` expire.
"""

import logging
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0  # seconds between two checks of waiting sessions
_MOST_SHOWN = 100  # characters of a statement
_TCP_INFO = struct.Struct("=44x3I")  # milliseconds since data was sent, something acknowledged, data received

T = TypeVar("T")


class NoAnswer(psycopg.OperationalError):
    """``seconds``: how long we had waited when we closed the connection."""

    def __init__(self, said: str, seconds: float):
        super().__init__(said)
        self.seconds = seconds


class AnswerWait:
    """Answer timeout of one session. ``asked_at`` is 0 while no answer is awaited: two assignments per statement."""

    __slots__ = ("asked_at", "error", "is_lent", "seconds", "what")

    def __init__(self) -> None:
        self.seconds = float("inf")
        self.asked_at = 0.0
        self.what: Any = b""  # the statement, if known
        self.is_lent = False  # a handler uses the session, without timeout
        self.error: NoAnswer | None = None

    def has_ended(self, asked_at: float, now: float) -> None:
        since = datetime.now(UTC) - timedelta(seconds=now - asked_at)
        text = self.what.decode(errors="replace") if isinstance(self.what, bytes) else str(self.what)
        what = " ".join(text.split())[:_MOST_SHOWN]
        said = f"no answer for {now - asked_at:.0f} s, since {since:%H:%M:%S} UTC"
        self.error = NoAnswer(f"{said}, to: {what}" if what else said, now - asked_at)


class PatientConnection(psycopg.Connection[Any]):
    """The driver's session with an answer timeout on the driver's own waits; other callers set ``patience``."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.patience = AnswerWait()

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait with the answer timeout, unless ``timeout`` is given, as for notifications; None means no timeout."""
        patience = self.patience
        if patience.is_lent or "timeout" in kwargs:
            return super().wait(gen, *args, **kwargs)
        patience.asked_at = time.monotonic()
        try:
            return super().wait(gen, *args, **kwargs)
        except psycopg.Error as error:
            if patience.error:
                raise patience.error from error
            raise
        finally:
            patience.asked_at = 0.0
            patience.what = b""


# The driver module as Django uses it: errors by name, and ``connect``.
DRIVER = SimpleNamespace(**{**vars(psycopg), "connect": PatientConnection.connect})

_watched: WeakSet[PatientConnection] = WeakSet()
_lock = threading.Lock()
_is_watching = False


def limit(raw: psycopg.Connection[Any], seconds: float | None) -> None:
    """Close the connection if an answer takes longer and no data of it arrives. None: no timeout."""
    global _is_watching
    if not isinstance(raw, PatientConnection):
        return
    raw.patience.seconds = seconds or float("inf")
    if seconds:
        with _lock:
            _watched.add(raw)
            if not _is_watching:
                _is_watching = True
                threading.Thread(target=_watch, name="pgqueue patience", daemon=True).start()


def hang_up(raw: psycopg.Connection[Any]) -> None:
    """Shut down only the socket: closing libpq's session while another thread uses it is not safe."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def _watch() -> None:
    while seconds := _look():
        time.sleep(seconds)


def _look() -> float:
    """Check all watched sessions; return seconds until the next check, or 0 to end the thread if none is left."""
    global _is_watching
    with _lock:
        watched = [raw for raw in _watched if not raw.closed]
        _is_watching = bool(watched)
    now = time.monotonic()
    for raw in watched:
        if _is_over(raw, now):
            _give_up(raw, now)
    shortest = min((raw.patience.seconds for raw in watched), default=0.0)
    return min(LOOK_EVERY, shortest / 4)


def _is_over(raw: PatientConnection, now: float) -> bool:
    """Whether the timeout is over. A large answer or statement may take longer while its data is in motion."""
    patience = raw.patience
    asked_at = patience.asked_at
    if not asked_at or now - asked_at < patience.seconds or patience.error:
        return False
    is_waiting = raw.pgconn.transaction_status == TransactionStatus.ACTIVE
    return is_waiting and _quiet_for(raw) >= patience.seconds and patience.asked_at == asked_at


def _give_up(raw: PatientConnection, now: float) -> None:
    raw.patience.has_ended(raw.patience.asked_at or now, now)
    log.warning("Session %r was given up: %s", _name(raw), raw.patience.error)
    hang_up(raw)


def _name(raw: PatientConnection) -> str:
    with suppress(psycopg.Error):
        return raw.info.parameter_status("application_name") or ""
    return ""


def _quiet_for(raw: PatientConnection) -> float:
    """Seconds since data passed in either direction; infinite if the kernel does not report it."""
    try:
        with socket.socket(fileno=os.dup(raw.fileno())) as wire:
            sent, _, received = _TCP_INFO.unpack_from(wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 64))
    except (OSError, AttributeError, struct.error, psycopg.Error):  # a Unix socket; not Linux
        return float("inf")
    return min(sent, received) / 1000


def _begin_anew() -> None:
    """Reset in a forked child: the sessions belong to its parent, and the thread does not exist."""
    global _is_watching, _watched, _lock
    _is_watching, _watched, _lock = False, WeakSet(), threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)
