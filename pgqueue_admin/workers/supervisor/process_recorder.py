"""Collects process events, and writes them once the console's database accepts them."""

import threading
from copy import copy
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from pgqueue_admin.archive.messages import clean
from pgqueue_admin.models import InFlightAtCrash, Process, database_clock, notify
from pgqueue_admin.services import hosts
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity

Facts = dict[str, Any]
KEPT = timedelta(days=8)  # as long as samples


class ProcessRecorder:
    """Merges facts per process, so a long outage costs at most one row each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[ProcessIdentity, Facts] = {}
        self._held: list[InFlightAtCrash] = []

    def note(self, identity: ProcessIdentity, **facts: Any) -> None:
        with self._lock:
            self._pending.setdefault(identity, {}).update(facts)

    def hold(self, held: list[InFlightAtCrash]) -> None:
        """Messages in flight when a process ended."""
        with self._lock:
            self._held.extend(held)

    @property
    def pending(self) -> bool:
        return bool(self._pending or self._held)

    def write(self) -> None:
        """Raises django.db.Error; unwritten facts are kept for the next try."""
        for identity, facts in self._snapshot():
            record(identity, facts)
            with self._lock:
                if self._pending[identity] == facts:
                    del self._pending[identity]
        self._write_held()

    def _write_held(self) -> None:
        with self._lock:
            held = list(self._held)
        if held:
            InFlightAtCrash.objects.bulk_create(map(_by_the_one_clock, held), ignore_conflicts=True)
            with self._lock:
                del self._held[: len(held)]

    def _snapshot(self) -> list[tuple[ProcessIdentity, Facts]]:
        with self._lock:
            return [(identity, dict(facts)) for identity, facts in self._pending.items()]


def _by_the_one_clock(held: InFlightAtCrash) -> InFlightAtCrash:
    """A copy in the database's time: after a failed write, the next try converts again, by the offset then."""
    held = copy(held)
    held.received_at, held.died_at = database_clock.of_host(held.received_at), database_clock.of_host(held.died_at)
    return held


def record(identity: ProcessIdentity, facts: Facts) -> None:
    """Insert or update a process's row; a new row needs its role. Notifies, except for mere heartbeats.

    A last heartbeat that arrives after the supervisor recorded the end is ignored.
    """
    if "last_error" in facts:
        facts = {"last_error_at": None, **facts}  # else the time of an earlier error would stay
    key, facts = identity._asdict(), {name: _as_it_is_kept(name, value) for name, value in facts.items()}
    row, beats = Process.objects.filter(**key), "heartbeat_at" in facts
    is_taken = _beat(row, facts) if beats else bool(row.update(**facts))
    if not is_taken and not row.exists():
        fresh = {"started_at": Now(), "heartbeat_at": Now(), **facts}
        Process.objects.update_or_create(**key, defaults=fresh)
    if not beats:
        notify.announce(notify.PROCESS, facts.get("endpoint") or facts.get("role") or "")


def _beat(row: QuerySet[Process], facts: Facts) -> bool:
    """False: no such process, or it has ended, unless only its host was declared lost."""
    return bool(row.filter(ended_at=None).update(**facts)) or hosts.back(row, facts)


def _as_it_is_kept(name: str, fact: Any) -> Any:
    """Times are converted to the database's clock: a supervisor must not query a database before it acts.

    Texts lose NUL and are cut to their column: a long exception or PGQUEUE_CODE_VERSION would fail every later report.
    """
    if isinstance(fact, str):
        return clean(fact, getattr(Process._meta.get_field(name), "max_length", None))
    return database_clock.of_host(fact) if isinstance(fact, datetime) else fact


def close_rows_without_process(host: str) -> None:
    """A killed supervisor recorded no ends: its children died with it."""
    close_dead(host)
    waiting = Process.objects.filter(host=host, state=Process.State.BACK_OFF)
    waiting.update(state=Process.State.CRASHED, next_start_at=None)


def close_dead(host: str, role: str = "") -> None:
    """Close rows of this host whose process is gone: of one role or of all."""
    for row in Process.objects.filter(host=host, ended_at=None, **({"role": role} if role else {})):
        if not ProcessIdentity(row.host, row.pid, row.start_ticks).alive:
            _close(row)


def forget_old() -> None:
    """An endpoint in a crash loop writes a row every two minutes; a lost host records no end."""
    Process.objects.filter(ended_at__lt=Now() - KEPT).delete()
    Process.objects.filter(ended_at=None, heartbeat_at__lt=Now() - KEPT).delete()
    InFlightAtCrash.objects.filter(died_at__lt=Now() - KEPT).delete()


def _close(row: Process) -> None:
    row.state, row.ended_at = Process.State.LOST, Now()
    row.save(update_fields=["state", "ended_at"])
