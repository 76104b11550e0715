"""Fills the outbox's ports: the first-seen times of records, and the audit of relayed ones."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

import django.db
from django.db import connections

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import database_clock, outbox_first_seen
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.outbox.first_seen import SeenByThisProcess
from pgqueue_admin.services.outbox.acts import note_sent
from pgqueue_admin.services.outbox.switches import here

log = logging.getLogger(__name__)


class DurableFirstSeen:
    """Implements outbox.first_seen.FirstSeen.

    Beyond the records kept per table, and while the console's database is down, uses what this process saw.
    """

    def __init__(self) -> None:
        self._here = SeenByThisProcess()

    def ages(self, session: Connection, table: Address, records: Collection[str]) -> dict[str, timedelta]:
        seen = self._here.ages(session, table, records)
        if not records:
            return seen
        database = here(session)
        only_short_ones_here()
        try:
            since = outbox_first_seen.note(database, table, records)
            now = database_clock.now()
        except django.db.Error as error:
            log.warning("Since when records of %s wait is known by this process alone: %s", ".".join(table), error)
            return seen
        finally:
            connections["default"].close()  # used rarely
        return {each: max(age, now - since[each]) if each in since else age for each, age in seen.items()}


_LONGEST_NAME = 150  # of the actor in the audit


@dataclass(frozen=True, slots=True)
class RelayAudit:
    """Implements outbox.settings.Relayed: an audit entry for each run of an endpoint's relay that sent something.

    While the console's database is down only the log has it: what was sent stays sent.
    """

    endpoint: str

    def __call__(self, outbox: str, records: int, messages: int) -> None:
        only_short_ones_here()
        try:
            note_sent(outbox, records, messages, f"relay of {self.endpoint}"[:_LONGEST_NAME], "relay")
        finally:
            connections["default"].close()
