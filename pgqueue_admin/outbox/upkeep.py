"""Cleans up an outbox table and sends what a crash left in it; one process of the endpoint leads (O8, O9)."""

import logging
import threading
import time
from datetime import timedelta
from typing import Protocol

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.outbox_store import OutboxRecord, OutboxStore
from pgqueue_admin.outbox.coordinator import Coordinator
from pgqueue_admin.outbox.first_seen import SeenByThisProcess
from pgqueue_admin.outbox.settings import OutboxSettings
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreaker
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession
from pgqueue_admin.transport.sessions.session_opening import Opening
from pgqueue_admin.transport.wire.message import OutgoingMessage

log = logging.getLogger("pgqueue_admin.outbox")

BATCH = 4000  # records per delete, as the original
RELAYED_AT_ONCE = 100
NEVER = timedelta(days=36_500)
RECOVER_EVERY = timedelta(minutes=1)
RESTS = 3.0  # pause after a batch, as a multiple of its duration
FIRST_LOOK = 5.0  # seconds: a frequently restarted process must get to look, too
IN_DOUBT = 2.0  # seconds: prepared transactions block others, and their owner is likely gone soon
AT_START = (
    3  # recoveries by a process that does not lead: it may replace the one that died; the leader looks each minute
)


class KeptOutbox(Protocol):
    """What upkeep needs of an endpoint's outbox."""

    settings: OutboxSettings
    store: OutboxStore
    opening: Opening
    coordinator: Coordinator | None

    def send(self, session: Connection, row: OutboxRecord) -> list[OutgoingMessage]: ...
    def dispatched(self, outgoing: list[OutgoingMessage]) -> None: ...


class OutboxUpkeep:
    """A thread with its own session. The leader's session holds an advisory lock; the others try each time."""

    def __init__(self, outbox: KeptOutbox, breaker: CircuitBreaker):
        self._outbox, self._settings, self._breaker = outbox, outbox.settings, breaker
        recovers = RECOVER_EVERY if outbox.coordinator else None
        spans = [span for span in (self._settings.clean_every, self._settings.relay_after, recovers) if span]
        self._every, self._has_looked = min(spans, default=NEVER).total_seconds(), False
        self._is_in_doubt = outbox.coordinator is not None  # at start: a crash may have caused it
        self._recoveries = 0
        self._session = ReconnectingSession(outbox.opening.of("outbox").ours)
        self._first_seen = self._settings.first_seen or SeenByThisProcess()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"{outbox} upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(1)
        self._session.abort()
        self._thread.join()
        self._session.close()

    def _loop(self) -> None:
        while not self._stopping.wait(self._pause()):
            try:
                self.run_once()
            except Exception as error:  # on any error: records must not wait for a restart
                if not self._stopping.is_set():
                    self._stopping.wait(self._breaker.failed(error))
            else:
                self._has_looked = True
                self._breaker.succeeded()

    def _pause(self) -> float:
        every = self._every if self._has_looked else min(self._every, FIRST_LOOK)
        return min(every, IN_DOUBT) if self._is_in_doubt else every

    def run_once(self) -> None:
        """Look once; then work in rounds until done or stopped. Raises DatabaseError."""
        session, settings = self._session.fresh(), self._settings
        work = self._outbox.store.work(session, settings.keep, settings.relay_after or NEVER)
        if self._outbox.coordinator and (work.leads or self._is_in_doubt):
            self._recover(session, self._outbox.coordinator, work.leads)
        if work.leads and work.relay and settings.relay_after:
            self._relay(session, settings.relay_after)
        if work.leads and work.purge and settings.clean_every:
            while self._purge(session) == BATCH and not self._stopping.is_set():
                pass

    def _recover(self, session: Connection, coordinator: Coordinator, leads: bool) -> None:
        """Safe to run twice at once: each transaction is ended once, as it was decided."""
        self._recoveries += 1
        is_left = coordinator.recover(session)
        self._is_in_doubt = is_left and (leads or self._recoveries < AT_START)

    def _purge(self, session: Connection) -> int:
        """Then pause: receivers need processors and disk as well."""
        started = time.monotonic()
        purged = self._outbox.store.purge(session, self._settings.keep, BATCH)
        if purged == BATCH:
            self._stopping.wait(RESTS * (time.monotonic() - started))
        return purged

    def _relay(self, session: Connection, grace: timedelta) -> None:
        sent: dict[str, int] = {}
        try:
            self._send_old(session, grace, sent)
        finally:  # report what was sent, even after an error
            if sent:
                self._tell(len(sent), sum(sent.values()))

    def _tell(self, records: int, messages: int) -> None:
        log.warning("The relay of %s sent what %d handled message(s) had left unsent.", self._outbox, records)
        try:
            if self._settings.relayed:
                self._settings.relayed(str(self._outbox), records, messages)
        except Exception:  # any error: failing to record it must not stop the relay
            log.exception("It is kept no account of that.")

    def _send_old(self, session: Connection, grace: timedelta, sent: dict[str, int]) -> None:
        """``sent``: messages sent per record, filled as it proceeds."""
        old = self._seen_for(session, grace)
        passed = set[str]()  # skip records that could not be sent, so that they hide no others
        while not self._stopping.is_set():
            with session.transaction():
                found = self._outbox.store.pending(session, grace, RELAYED_AT_ONCE, passed)
                due = [record for record in found if old is None or record.id in old]
                tried = {record.id: self._dispatch(session, record) for record in due}
            dispatched = {each: outgoing for each, outgoing in tried.items() if outgoing is not None}
            for outgoing in dispatched.values():
                self._outbox.dispatched(outgoing)
            passed.update(record.id for record in found if record.id not in dispatched)
            sent |= {each: len(outgoing) for each, outgoing in dispatched.items()}
            if len(found) < RELAYED_AT_ONCE:
                break

    def _seen_for(self, session: Connection, grace: timedelta) -> set[str] | None:
        """For a table without ages: the records seen for at least ``grace``. None: the table stores ages."""
        store = self._outbox.store
        if store.says_when:
            return None
        ages = self._first_seen.ages(session, store.address, self._waiting(session))
        return {each for each, age in ages.items() if age >= grace}

    def _waiting(self, session: Connection) -> list[str]:
        """All waiting records; locked ones are being sent. All locks are released on return."""
        ids = list[str]()
        while not self._stopping.is_set():
            with session.transaction():
                found = self._outbox.store.pending(session, timedelta(), RELAYED_AT_ONCE, ids)
            ids += [record.id for record in found]
            if len(found) < RELAYED_AT_ONCE:
                break
        return ids

    def _dispatch(self, session: Connection, record: OutboxRecord) -> list[OutgoingMessage] | None:
        """Return the messages sent: beside the queues in one commit with the mark, elsewhere before it, with the same
        ids.

        None: sending failed, and is tried again.
        """
        try:
            with session.transaction():
                return self._outbox.send(session, record)
        except DatabaseDown:
            raise
        except Exception as error:  # any error concerns this record alone
            log.error("Record %s of %s is not dispatched, and is tried again: %s", record.id, self._outbox, error)
            return None
