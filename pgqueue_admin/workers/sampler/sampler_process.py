"""The sampler process: samples all queues every second, stores the result and notifies the pages (C2)."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import django.db
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import LatestSample, Process, database_clock, notify, outage, processes, samples, staleness
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database, queues_in
from pgqueue_admin.monitor.queue_history import RememberedDepth
from pgqueue_admin.monitor.sampler import QueueSample, Sampler
from pgqueue_admin.workers.processes.advisory_lock import SingletonLock
from pgqueue_admin.workers.processes.ttbr_recorder import TtbrNotes
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
from pgqueue_admin.workers.sampler import sampler_store
from pgqueue_admin.workers.sampler.clock_offset import ClockOffset
from pgqueue_admin.workers.sampler.dead_counts import DeadCounts
from pgqueue_admin.workers.sampler.sampler_store import QueueRegistry, SampleDifferences
from pgqueue_admin.workers.supervisor.process_recorder import record

log = logging.getLogger(__name__)
STATEMENT_SECONDS = 2.0
HEARTBEAT_EVERY = 2.0
LONGEST_REST = 5.0
# Prepared statements for 5,000 queues: depth, what messages tell, and when a head was sent. Each existing queue takes a
# third of a megabyte of the server's memory; further queues are planned anew at each look.
MOST_STATEMENTS = 15_000


def run(of: QueueDatabase | None = None) -> None:
    """Run until SIGTERM or SIGINT."""
    only_short_ones_here()
    ending, process, pulse = ShutdownSignal(), SamplerProcess(of), LivenessFile()
    seconds = settings.PGQUEUE["SAMPLE_SECONDS"]
    while not ending.asked:
        began = time.monotonic()
        pulse.beat()
        process.run_once()
        spent = time.monotonic() - began
        ending.wait(rest(seconds, spent))
    process.close()


def rest(every: float, spent: float) -> float:
    """Seconds until the next turn: a slow database is queried at most half of the time. The cap is for a database that
    hung: a rest as long as the outage would leave the sampler blind after it."""
    return max(every - spent, min(spent, LONGEST_REST))


class SamplerProcess:
    """One per console database and database with queues. Survives outages: the last figures stay, new ones follow."""

    def __init__(self, of: QueueDatabase | None = None, monotonic: Callable[[], float] = time.monotonic):
        """``of``: a monitored database beside the first; None: the first."""
        self._of, self._monotonic = of or queue_database(), monotonic
        self._sampler = Sampler(
            self._session,
            self._of.schemas,
            cap=settings.PGQUEUE["CAP"],
            every=settings.PGQUEUE["SAMPLE_SECONDS"],
            remembered=self._remembered,
            monotonic=monotonic,
        )
        alias = self._of.alias
        self._sole = SingletonLock(f"sampler of {alias}" if alias else "sampler")
        self._roster, self._differences = QueueRegistry(alias), SampleDifferences()
        self._ahead = ClockOffset()
        self._dead = None if alias else DeadCounts()  # only the first database has an archive
        self._lifetimes = TtbrNotes(self._of, monotonic)
        self._history_at = datetime.min.replace(tzinfo=UTC)
        self._beat_at = 0.0
        self._blind = ""  # why the queues cannot be read
        self._outage = outage.DatabaseOutage()  # of the console's database
        self._unfound = ""  # why new queues cannot be found

    def run_once(self) -> None:
        """Sample once, store once."""
        try:
            if self._sole.mine():
                self._beat()
                self._write(self._look())
            if self._outage.is_over():
                log.warning("The console's database answers again.")
        except (django.db.Error, DatabaseError) as error:
            self._lose_console(error)

    def close(self) -> None:
        self._sampler.close()
        self._sole.resign()
        connections["default"].close()

    def _look(self) -> list[QueueSample] | None:
        """None while the queues' database is down, or denies access to its queues."""
        began = database_clock.now()
        try:
            seen = self._sampler.sample()
            if self._dead:
                self._dead.read()
        except DatabaseError as error:
            self._note_blind(str(error))
            return None
        self._note_blind("")
        self._note_unfound(self._sampler.unfound)
        if seen:
            self._ahead.note(began, seen[0].at, database_clock.now())
        return self._ahead.taken_off(seen)

    def _write(self, seen: list[QueueSample] | None) -> None:
        self._look_after_others()
        if seen is None:
            self._beat()
            samples.mark_unreadable(self._blind, queues_in(self._of.alias).values_list("pk", flat=True))
            return self._differences.forget()
        self._roster.update(self._sampler.tables)
        if not seen:
            return self._say_that_there_is_none()
        self._store(seen, seen[0].at)
        for sample in seen:
            if sample.error:
                self._note_unreadable(self._roster.ids[sample.table.address], sample)
        return self._lifetimes.take(seen, self._roster.ids)

    def _look_after_others(self) -> None:
        """A silent sampler cannot report itself."""
        since = database_clock.now() - timedelta(seconds=staleness.limit())
        for other in [queue_database(), *looked_at()] if looked_at() else []:
            if other.alias != self._of.alias and not processes.heard_of().filter(**_role(other)).exists():
                samples.mark_silent(queues_in(other.alias), since)

    def _say_that_there_is_none(self) -> None:
        """Without queues there is no sample: the heartbeat shows that the sampler looked."""
        self._beat_at = 0.0
        notify.announce(notify.SAMPLE, str(samples.number(database_clock.now())))

    def _note_unreadable(self, queue_id: int, sample: QueueSample) -> None:
        """A queue that was never read gets a row without figures: missing figures are not within target."""
        fresh = {"at": sample.at, "changed_at": sample.at}
        LatestSample.objects.get_or_create(queue_id=queue_id, defaults=fresh)
        samples.mark_unreadable(sample.error, [queue_id], sqlstate=sample.sqlstate)
        self._differences.forget_one(queue_id)

    def _store(self, seen: list[QueueSample], at: datetime) -> None:
        ids = self._roster.ids
        rows = [
            sampler_store.row(ids[each.table.address], each, self._dead.of(each.table) if self._dead else None)
            for each in seen
            if each.depth
        ]
        unread = {ids[each.table.address]: each.error for each in seen if not each.depth}
        changed, unchanged = self._differences.split(rows)
        since = at - self._history_at  # negative if the clock stepped back
        history = not timedelta() <= since < samples.HISTORY_EVERY - timedelta(seconds=0.5)
        if self._dead and self._dead.total is not None:
            samples.store_archive(self._dead.total, at, history)
        samples.store(changed, unchanged, at, history, unread)
        self._history_at = at if history else self._history_at

    def _beat(self) -> None:
        if self._monotonic() < self._beat_at:
            return
        self._beat_at = self._monotonic() + HEARTBEAT_EVERY
        facts = {**_role(self._of), "state": Process.State.RUNNING, "heartbeat_at": Now()}
        record(process_identity.mine(), {**facts, **process_stats.facts(), "last_error": self._blind or self._unfound})

    def _session(self) -> Connection:
        connection = _session(self._of)
        try:
            self._ahead.ask(connection)
        except DatabaseError:
            connection.close()  # each retry opens another one
            raise
        return connection

    def _remembered(self, address: Address) -> RememberedDepth | None:
        return self._ahead.put_on(sampler_store.remembered(address))

    def _lose_console(self, error: Exception) -> None:
        """Afterwards everything is stored anew: what reached the database is unknown."""
        if self._outage.is_news(error):
            log.warning("The console's database %s; the last figures stay. %s", outage.describe(error), error)
        self._sole.let_go()
        connections["default"].close()
        self._differences.forget()
        self._roster.forget()

    def _note_blind(self, error: str) -> None:
        if error and not self._blind:
            log.warning("The queues' database does not answer; the last figures stay. %s", error)
        elif self._blind and not error:
            log.warning("The queues' database answers again.")
        if error != self._blind:
            self._beat_at = 0.0  # pages read the reason from the heartbeat; notify them now
        self._blind = error

    def _note_unfound(self, error: str) -> None:
        if error and not self._unfound:
            log.warning("New queues are not found, and ones that are gone are not missed. %s", error)
        elif self._unfound and not error:
            log.warning("New queues are found again.")
        self._unfound = error


def _role(of: QueueDatabase) -> dict[str, str]:
    return {"role": "source-sampler", "endpoint": of.alias} if of.alias else {"role": "sampler", "endpoint": ""}


def _session(of: QueueDatabase) -> Connection:
    return of.dialect.connect(
        of.dsn,
        application_name=f"pgqueue sampler reads{f' for {of.alias}' if of.alias else ''}",
        read_only=True,
        statement_timeout=STATEMENT_SECONDS,
        prepared_statements=MOST_STATEMENTS,
        fail_fast=True,
        answer_seconds=settings.PGQUEUE["ANSWER_SECONDS"],
    )
