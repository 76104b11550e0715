"""The queries of a recount: a window, and a queue, an endpoint, a type or all."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pgqueue_admin.history.rollups.queries import TrendQuery

Window = tuple[datetime, datetime]
EACH_SUBJECT = """lateral (values
    ('', ''), ('queue', queue), ('endpoint', endpoint), ('type', type),
    ('endpoint + type', nullif(endpoint, '') || ' + ' || nullif(type, ''))
) as subject (what, name)"""


@dataclass(frozen=True)
class Subject:
    """``what``: queue, endpoint, type, or the latter two together; empty: all."""

    what: str
    name: str

    @property
    def names(self) -> dict[str, str]:
        return dict(zip(self.what.split(" + "), self.name.split(" + "), strict=True)) if self.what else {}

    def asked(self, window: Window, grain: str) -> TrendQuery:
        since, until = window
        return TrendQuery(since, until, grain, **self.names)


ALL = Subject("", "")


def halves(window: Window) -> tuple[Window, Window]:
    """Split at a midnight."""
    since, until = window
    middle = since + timedelta(days=(until - since).days // 2)
    return (since, middle), (middle, until)


def hours(window: Window) -> tuple[Window, Window]:
    """The 20 hours before 20:00 of the second day, and the hour after."""
    evening = window[0] + timedelta(days=1, hours=20)
    return (evening - timedelta(hours=20), evening), (evening, evening + timedelta(hours=1))
