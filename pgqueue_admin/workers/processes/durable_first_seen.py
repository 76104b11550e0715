"""Fills the outbox's port for records that do not say since when they wait: the console's database remembers it."""

import logging
from collections.abc import Collection
from datetime import timedelta

import django.db
from django.db import connections

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import database_clock, outbox_first_seen
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.outbox.first_seen import SeenByThisProcess
from pgqueue_admin.services.foreign_outboxes import here

log = logging.getLogger(__name__)


class DurableFirstSeen:
    """Implements outbox.first_seen.FirstSeen.

    Beyond the number that is kept of a table, and while the console's database is away: as this process saw them.
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
            connections["default"].close()  # asked once in a while
        return {each: max(age, now - since[each]) if each in since else age for each, age in seen.items()}
