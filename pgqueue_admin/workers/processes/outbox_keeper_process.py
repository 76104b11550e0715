"""The outbox keeper: relays and cleans up other programs' outbox tables where switched on (O8, O9)."""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import django.db
from django.conf import settings
from django.db import connections
from django.db.models import F
from django.db.models.functions import Now

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import ForeignOutbox, database_clock, foreign_outbox, outbox_first_seen, outbox_owners
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.monitor.outboxes import OutboxTable
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.upkeep import BATCH, NEVER, RELAYED_AT_ONCE
from pgqueue_admin.services.outbox import first_seen
from pgqueue_admin.services.outbox.acts import note_sent
from pgqueue_admin.services.outbox.checked_outbox import CheckedOutbox, OutboxClosed, Relayed, engine_for
from pgqueue_admin.services.outbox.switches import here
from pgqueue_admin.transport.sessions.reconnecting_session import ReconnectingSession
from pgqueue_admin.transport.settings import SettingsRefused
from pgqueue_admin.workers.processes.advisory_lock import SingletonLock
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
from pgqueue_admin.workers.supervisor.process_recorder import record


# Upkeep of one foreign outbox table: sends records that waited too long, deletes records past their retention.
class UpkeepResult(NamedTuple):
    """``more``: time ran out before the work."""

    cleaned: int = 0
    trouble: str = ""
    more: bool = False


class ForeignOutboxUpkeep:
    """The table does not record since when a record waits: the grace period starts when any process first saw it."""

    def __init__(self, table: Address, tell: Callable[[Relayed], None]):
        """``tell``: called for each committed batch. Raises SettingsRefused if no endpoint can have this table."""
        self._tell = tell
        self._engine, self._table = engine_for(table), table
        assert isinstance(self._engine.outbox, EndpointOutbox)
        self.outbox = CheckedOutbox(self._engine.outbox, table)
        self.outbox.store.says_when = False  # times written by other programs are not trusted

    def run_once(self, session: Connection, wanted: ForeignOutbox, until: float) -> UpkeepResult:
        """Raises DatabaseError, or OutboxClosed."""
        work = self.outbox.store.work(session, wanted.keep or NEVER, NEVER)
        if not work.leads:
            return UpkeepResult(trouble="an endpoint, or another console, keeps it: nothing is done from here")
        done = UpkeepResult() if wanted.relay_after is None else self._relay(session, wanted, wanted.relay_after, until)
        cleaned = self.outbox.clean(session, wanted.keep, BATCH) if wanted.keep and work.purge else 0
        return done._replace(cleaned=cleaned, more=done.more or cleaned == BATCH)

    def close(self) -> None:
        self._engine.stop(0)

    def _relay(self, session: Connection, wanted: ForeignOutbox, grace: timedelta, until: float) -> UpkeepResult:
        refused, due = dict[str, str](), self._due(session, wanted.database, grace)
        while due and time.monotonic() < until:
            sent = self.outbox.relay_those(session, due[:RELAYED_AT_ONCE])
            if sent.ids:
                self._tell(sent)
            refused |= sent.refused
            due = due[RELAYED_AT_ONCE:]
            outbox_first_seen.forget(wanted.database, self._table, sent.ids)
        return UpkeepResult(trouble=_told(refused), more=bool(due))

    def _due(self, session: Connection, database: str, grace: timedelta) -> list[str]:
        since = first_seen.follow(session, database, self._table)
        now = database_clock.now()
        return [each for each, at in since.items() if now - at >= grace]


def _told(refused: dict[str, str]) -> str:
    if not refused:
        return ""
    record, why = next(iter(refused.items()))
    others = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
    return f"record {record} is not sent{others}: {why}"


log = logging.getLogger(__name__)
ROLE = "outbox-keeper"
WHO = "relay of the console"  # in the audit
BEAT = 2.0  # most seconds between two heartbeats
EVERY = 20.0  # seconds between two looks
AT_MOST = 3.0  # seconds per table and look
STATEMENT_SECONDS = 10.0  # longest wait for a locked table


def run() -> None:
    """Run until SIGTERM or SIGINT."""
    only_short_ones_here()
    ending, process, pulse = ShutdownSignal(), OutboxKeeperProcess(), LivenessFile()
    while not ending.asked:
        pulse.beat()
        process.run_once(pulse)
        ending.wait(process.rest)
    process.close()


class OutboxKeeperProcess:
    """One per console database. Does nothing while that database is down: it says what is switched on."""

    def __init__(self) -> None:
        self._me, self._sole = process_identity.mine(), SingletonLock(ROLE)
        self._session = ReconnectingSession(_session)
        self._kept: dict[Address, ForeignOutboxUpkeep] = {}
        self._trouble: dict[Address, str] = {}
        self._look_at, self._sent = 0.0, 0

    @property
    def rest(self) -> float:
        return max(0.0, min(BEAT, self._look_at - time.monotonic()))

    def run_once(self, pulse: LivenessFile | None = None) -> None:
        try:
            self._report()
            if time.monotonic() >= self._look_at and self._sole.mine():
                self._look_at = time.monotonic() + EVERY
                self.look(pulse)
        except (DatabaseError, django.db.Error) as error:
            log.warning("Outboxes of others are not kept: %s", error)
            self._look_at = time.monotonic() + EVERY
            connections["default"].close()

    def close(self) -> None:
        self._forget(list(self._kept))
        self._session.close()
        self._sole.resign()

    def look(self, pulse: LivenessFile | None = None) -> None:
        """Visit each table that is switched on. Raises DatabaseDown, or django.db.Error."""
        wanted = {Address(row.schema, row.table): row for row in foreign_outbox.kept()}
        self._forget(self._kept.keys() - wanted.keys())
        if not wanted:
            return
        session, ours = self._session.fresh(), outbox_owners.by_table()
        found = {each.address: each for each in outboxes.find(session, list(queue_database().schemas))}
        database = here(session)
        for table, row in wanted.items():
            if pulse:
                pulse.beat()
            self._report()
            blocking_reason = _blocking_reason(row, database, table in ours, found.get(table))
            self._write_down(
                row,
                table,
                UpkeepResult(trouble=blocking_reason) if blocking_reason else self._turn_of(session, table, row),
            )

    def _turn_of(self, session: Connection, table: Address, row: ForeignOutbox) -> UpkeepResult:
        try:
            if table not in self._kept:
                self._kept[table] = ForeignOutboxUpkeep(table, partial(self._told, row))
            return self._kept[table].run_once(session, row, time.monotonic() + AT_MOST)
        except DatabaseDown:
            raise
        except (DatabaseError, OutboxClosed, SettingsRefused) as error:
            return UpkeepResult(trouble=str(error))

    def _told(self, row: ForeignOutbox, sent: Relayed) -> None:
        note_sent(postgresql().canonical(Address(row.schema, row.table)), len(sent.ids), sent.messages, WHO, "relay")
        log.warning("%d record(s) of %s were sent, which its program had left.", len(sent.ids), row)
        ForeignOutbox.objects.filter(pk=row.pk).update(relayed=F("relayed") + len(sent.ids))
        self._sent += sent.messages

    def _write_down(self, row: ForeignOutbox, table: Address, done: UpkeepResult) -> None:
        if done.trouble and done.trouble != self._trouble.get(table):
            log.warning("%s is not kept as it should be: %s", row, done.trouble)
        self._trouble[table] = done.trouble
        ForeignOutbox.objects.filter(pk=row.pk).update(
            looked_at=Now(),
            cleaned=F("cleaned") + done.cleaned,
            trouble=done.trouble[:2000],
        )
        if done.more:
            self._look_at = time.monotonic() + AT_MOST  # a rest: the other program needs the disk as well

    def _forget(self, tables: Iterable[Address]) -> None:
        for table in list(tables):
            self._kept.pop(table).close()
            self._trouble.pop(table, None)

    def _report(self) -> None:
        trouble = "; ".join(f"{'.'.join(table)}: {why}" for table, why in self._trouble.items() if why)
        facts = {"handled": self._sent, "last_error": trouble, **process_stats.facts()}
        record(self._me, {"role": ROLE, "state": "running", "heartbeat_at": Now(), **facts})


def _blocking_reason(row: ForeignOutbox, database: str, is_ours: bool, found: OutboxTable | None) -> str:
    """Why nothing may be done, as a page writes it after a colon."""
    if row.database != database:
        return "it was switched on for another database: look at it, and switch it on anew"
    if is_ours:
        return "an endpoint here has this outbox, and keeps it itself"
    if found is None:
        return "there is no such outbox table that may be looked at"
    if found.why_unread:
        return found.why_unread
    if missing := [column for column in outboxes.INDEXED if column in found.missing_indexes]:
        return f"without an index on {' and '.join(missing)} each look would read all of it"
    return ""


def _session() -> Connection:
    """A session of its own: leadership is a lock of the session."""
    of = queue_database()
    return of.dialect.connect(
        of.dsn,
        application_name="pgqueue-admin outbox keeper",
        statement_timeout=STATEMENT_SECONDS,
        answer_seconds=settings.PGQUEUE["ANSWER_SECONDS"] + STATEMENT_SECONDS,
    )
