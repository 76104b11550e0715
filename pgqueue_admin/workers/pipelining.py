"""Keeps history complete: asks twice a minute, when told, or when much came, and runs the driver."""

import logging
import threading
import time
from contextlib import suppress
from datetime import datetime

import django.db
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.embedded.priority import go_last
from pgqueue_admin.embedded.processors import Processors
from pgqueue_admin.pipeline.driver import Driver
from pgqueue_admin.pipeline.files.places import folder
from pgqueue_admin.pipeline.files.retention import retain
from pgqueue_admin.pipeline.files.sweep import sweep
from pgqueue_admin.pipeline.plan import days
from pgqueue_admin.pipeline.runtime import java
from pgqueue_admin.pipeline.runtime.class_archive import Making
from pgqueue_admin.pipeline.runtime.installing import Installing
from pgqueue_admin.pipeline.runtime.java import JavaLost
from pgqueue_admin.pipeline.sources import resting
from pgqueue_admin.records import clock
from pgqueue_admin.records.history import wanted_now
from pgqueue_admin.records.models import HistorySource
from pgqueue_admin.records.sessions.base import only_short_ones_here
from pgqueue_admin.workers import identity, pulse, vitals
from pgqueue_admin.workers.ending import Ending
from pgqueue_admin.workers.ledger import record
from pgqueue_admin.workers.sole import Sole

log = logging.getLogger(__name__)
EVERY = 30.0  # with what a batch takes, and the next, history is never a minute behind
FIRST = 10.0  # the console comes up first
BEAT = 2.0
AFTER_TROUBLE = 15.0
TIDY_EVERY = 3600.0


def run() -> None:
    """Until SIGTERM or SIGINT."""
    go_last()  # receivers on the same machine go first
    ending = Ending()
    pipelining = Pipelining(ending)
    pulse.keep_beating()  # of the process alone: nobody can say how long a batch may take
    threading.Thread(target=pipelining.beat, name="heartbeat", daemon=True).start()  # a batch takes longer than a beat
    while not ending.wait(BEAT):
        pipelining.turn()
    pipelining.close()


def once() -> int:
    """How many batches were read, and days made anew: of these a turn makes one."""
    driver = Driver(vitals.code_version())
    try:
        done, wanted = driver.turn(), _wanted()
        while wanted:
            made, before = driver.turn(), wanted
            done, wanted = done + made, _wanted()
            if not made and wanted == before:  # its folder is not there, say: it stays asked for
                break
        return done
    finally:
        with suppress(JavaLost):
            driver.close()


def held_back() -> list[str]:
    """Each table of which something is not read, and why."""
    known = HistorySource.objects.filter(is_there=True).exclude(note="").order_by("table")
    return [f"{table}: {note}" for table, note in known.values_list("table", "note")]


def _wanted() -> tuple[int, datetime] | None:
    """The day that is made anew next, and when somebody asked for that."""
    day = days.due()
    return (day.pk, day.asked_at) if day else None


def tidy() -> tuple[int, int]:
    """What is too old, and what belongs to nobody: two jobs that need no Spark; how many files or folders went."""
    kept, most, today = folder(), settings.PGQUEUE["HISTORY_DAYS"], clock.now().date()
    went = retain(kept, most, today), sweep(kept)
    if any(went):
        log.info("History: %s files were older than %s days, %s belonged to no batch.", went[0], most, went[1])
    return went


class Pipelining:
    """One per console database. Trouble is noted and tried again: what is not read now is read later."""

    def __init__(self, ending: Ending):
        self._ending, self._me, self._sole = ending, identity.mine(), Sole("pipeline")
        self._processors = Processors()
        self._driver = Driver(vitals.code_version(), is_busy=self._processors.are_others_busy, has_read=self._over)
        self._installing, self._trouble, self._batches = Installing(), "", 0
        self._absent = ""  # what was not installed when it was last looked for
        self._since: datetime | None = None  # when that trouble began
        self._making = Making(settings.PGQUEUE["VAR"] / "spark")
        self._due_at = self._tidy_at = time.monotonic() + FIRST

    def turn(self) -> None:
        self._processors.look()
        try:
            if self._sole.mine() and self._is_due():
                self._read()
            if self._sole.mine() and time.monotonic() >= self._tidy_at:
                self._tidy_at = time.monotonic() + TIDY_EVERY
                tidy()
            if self._batches:  # where nothing is ever read, nothing has to start sooner
                self._making.turn()
        except (django.db.Error, DatabaseError, OSError) as error:
            connections["default"].close()
            self._note(str(error))
        self._processors.rest()

    def close(self) -> None:
        self._making.close()
        with suppress(JavaLost):
            self._driver.close()
        self._sole.resign()

    def _is_due(self) -> bool:
        """By age, or because somebody asks, or by size: what came in a burst needs no half minute to be worth it."""
        return time.monotonic() >= self._due_at or wanted_now() or self._driver.much_came()

    def _read(self) -> None:
        self._due_at = time.monotonic() + EVERY
        was_absent, self._absent = self._absent, self._installing.wanted()
        if self._absent:
            self._note(self._absent)
            self._due_at = time.monotonic() + BEAT
            return
        if was_absent:
            self._note("")
        try:
            self._batches += self._driver.turn(lambda: self._ending.asked)
            self._over()
        except (django.db.Error, DatabaseError):
            raise
        except Exception as error:  # Spark raises whatever Java does
            self._note(java.said(error))
            self._stop_spark()
            self._due_at = time.monotonic() + AFTER_TROUBLE

    def _over(self) -> None:
        """What it was, but for a batch that failed: that is over when it is read, however long it rests until then."""
        self._note(resting.why())

    def _stop_spark(self) -> None:
        try:
            self._driver.close()
        except JavaLost as lost:
            log.error("History is read on by a new process, this one ends: %s", lost)
            raise SystemExit(1) from lost

    def beat(self) -> None:
        only_short_ones_here()
        while not self._ending.asked:
            self._processors.insist()
            try:
                self._report()
            except django.db.Error:
                connections["default"].close()
            time.sleep(BEAT)

    def _report(self) -> None:
        said = {"handled": self._batches, "last_error": self._trouble, "last_error_at": self._since, **vitals.facts()}
        record(self._me, {"role": "pipeline", "state": "running", "heartbeat_at": Now(), **said})

    def _note(self, trouble: str) -> None:
        """Once when it begins, once when it is over."""
        if trouble != self._trouble:
            self._since = clock.now() if trouble else None
        if trouble and trouble != self._trouble:
            log.warning("History is not read: %s", trouble)
        elif not trouble and self._trouble:
            log.warning("History is read again.")
        self._trouble = trouble
