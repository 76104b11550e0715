"""How messages of the lease queue ended in the last hour, as one bar and four links."""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from django.urls import reverse

from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.formatting.numbers import UNKNOWN, format_int
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor.lease_messages import Endings

WIDTH, THINNEST = 960, 4  # of the bar: one of a million stays visible

_WORDS = {
    "success": ("Success", "ok", "sw-ok", "archived as done"),
    "rejected": ("Rejected", "rejected-f", "k-delayed", "do not fit, or nobody handles them"),
    "failed": ("Failed", "deadf", "k-dead", "retries were used up"),
    "lock_expired": ("Lock expired", "skip-f", "k-expired", "too slow, or their worker died"),
}


class EndingShare(NamedTuple):
    word: str
    css: str
    swatch: str
    detail: str
    number: int
    start: int  # x of its part of the bar, which is WIDTH wide
    width: int
    path: str


@dataclass(frozen=True, slots=True)
class HourOfEndings:
    endings: Endings

    @property
    def all(self) -> int:
        return self.endings.all

    @property
    def shares(self) -> list[EndingShare]:
        found, before = [], 0
        for result, (word, css, swatch, detail) in _WORDS.items():
            number = self.endings.by_result.get(result, 0)
            start, end = (WIDTH * at // max(1, self.all) for at in (before, before + number))
            width = max(end - start, THINNEST if number else 0)
            found.append(EndingShare(word, css, swatch, detail, number, min(start, WIDTH - width), width, path(result)))
            before += number
        return found

    @property
    def sentence(self) -> str:
        """The bar in words, for screen readers."""
        said = ", ".join(f"{format_int(each.number)} {each.word.lower()}" for each in self.shares)
        return said if self.all else UNKNOWN


def path(result: str) -> str:
    """The archive, filtered to the messages that ended with this result."""
    queue = queue_database().dialect.canonical(QUEUE)
    return f"{reverse('archive')}?q={quote(f'queue:{queue} result:{result}', safe='')}"
