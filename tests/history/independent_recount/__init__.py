"""Trends recounted by plain SQL over the queues' own tables, without any rollup."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from tests.history.independent_recount import counts, failures, kinds, retry_outcomes, slowest, times
from tests.history.independent_recount.files import Files
from tests.history.independent_recount.rows import lay_out
from tests.history.independent_recount.tables import tables_agree
from tests.history.independent_recount.windows import ALL, Subject, Window

_EACH = (counts, times, kinds, slowest, failures, retry_outcomes)


class Recount:
    """Counts at creation. Trends may be compared with it whenever its steps are cut."""

    def __init__(self, database: Any, window: Window):
        self._database, self._window, self._client = database, window, Client()
        self._client.force_login(User.objects.create_user("ivo"))
        lay_out(database)
        self._plain = {each: each.plain(database, window) for each in _EACH}

    def agrees(self) -> None:
        self._figures_agree()
        self._files_agree()

    def _figures_agree(self) -> None:
        for each, plain in self._plain.items():
            told = each.told(self._window, list(plain))
            for key, figures in plain.items():
                assert told[key] == figures, (each.__name__, key)

    def _files_agree(self) -> None:
        """By hour and day, for all and one of each kind; by minute, for twelve hours long after the first."""
        _, until = self._window
        weeks = until - timedelta(days=40), until
        for subject in self._busiest():
            for window, grain in ((self._window, "hour"), (weeks, "day")):
                Files(self._client, self._plain, window, grain, subject).agree(self._database)
        hours = until - timedelta(hours=18), until - timedelta(hours=6)
        Files(self._client, self._plain, hours, "minute", ALL).agree(self._database)
        tables_agree(self._client, self._plain, weeks)

    def _busiest(self) -> list[Subject]:
        found = self._plain[kinds]["day", self._window]
        return [ALL, *(Subject(what, names[0][0]) for what, names in found.items())]
