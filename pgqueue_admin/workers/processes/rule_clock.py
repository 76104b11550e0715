"""Retries dead lease messages whose time has come by a rule: told of deaths, and looks once a minute."""

import time

import django.db
from django.conf import settings
from django.db import connections

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.services import lease_rules

EVERY = 60.0
APART = 0.2  # seconds between two looks, however many die
AT_MOST = 1.0  # seconds of one turn, in which no lock is ended


class RuleClock:
    """What fails here is said, and keeps nothing else waiting. ``trouble``: a sentence; empty: none."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self.retried, self.trouble = 0, ""

    @property
    def rest(self) -> float:
        """Seconds until it wants its next turn."""
        return max(0.0, self._look_at - time.monotonic())

    def put_off(self, seconds: float) -> None:
        """It is not its turn, or the database does not answer."""
        self._look_at = max(self._look_at, time.monotonic() + seconds)

    def wake(self) -> None:
        """Somebody has died, or seems to."""
        self._look_at = min(self._look_at, time.monotonic() + APART)

    def turn(self) -> None:
        if self.rest:
            return
        self._look_at = time.monotonic() + EVERY
        try:
            self._look(settings.PGQUEUE["ANSWER_SECONDS"])
            self.trouble = ""
        except DatabaseError as error:
            self.trouble = f"Rules of the lease queue are not followed: {error}"
        except django.db.Error as error:
            connections["default"].close()
            self.trouble = f"Rules of the lease queue wait for the console's database, which keeps the audit: {error}"

    def _look(self, answer_seconds: float) -> None:
        due_in = lease_rules.due_in(answer_seconds)
        if due_in is not None and due_in <= 0:
            self.retried += lease_rules.apply(AT_MOST)
            due_in = lease_rules.due_in(answer_seconds)
        if due_in is not None:
            self._look_at = time.monotonic() + min(EVERY, max(APART, due_in))
