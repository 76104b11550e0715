"""What is asked of Trends in a recount: a window, and a queue, an endpoint, a type or all."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pgqueue_admin.pipeline.figures.trends import Asked

Window = tuple[datetime, datetime]
EACH_SUBJECT = (
    "lateral (values ('', ''), ('queue', queue), ('endpoint', endpoint), ('type', type)) as subject (what, name)"
)


@dataclass(frozen=True)
class Subject:
    """``what``: queue, endpoint, type; empty: all."""

    what: str
    name: str

    def asked(self, window: Window, grain: str) -> Asked:
        since, until = window
        names = {self.what: self.name} if self.what else {}
        return Asked(since, until, grain, **names)


ALL = Subject("", "")


def halves(window: Window) -> tuple[Window, Window]:
    """Parted at a midnight."""
    since, until = window
    middle = since + timedelta(days=(until - since).days // 2)
    return (since, middle), (middle, until)
