"""Database times beyond Python's calendar: infinity, 44 BC, the year 294276."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self, SupportsIndex

_WRITTEN = re.compile(r"-?infinity|\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?(\+00)?( BC)?")


class Beyond(datetime):
    """A datetime a day inside that end of the calendar, so that a zone can be applied; arithmetic leaves it unchanged.

    ``beyond`` is the database's text. It is sent back to the database as that, also as the key of a page.
    """

    beyond: str = ""

    @classmethod
    def of(cls, text: str, zone: tzinfo | None = UTC) -> Self:
        is_before = text.startswith(("-", "0000")) or text.endswith("BC")
        made = cls(1, 1, 2, tzinfo=zone) if is_before else cls(9999, 12, 30, tzinfo=zone)
        made.beyond = text
        return made

    def isoformat(self, sep: str = " ", timespec: str = "auto") -> str:
        return self.beyond

    def __str__(self) -> str:
        return f"impossible time ({self.beyond})"

    def __format__(self, form: str) -> str:
        return str(self)

    def strftime(self, format: str) -> str:
        return str(self)

    def astimezone(self, tz: tzinfo | None = None) -> Self:
        return self

    def replace(self, *_: Any, **changed: Any) -> Self:
        return type(self).of(self.beyond, changed.get("tzinfo", self.tzinfo))

    def __add__(self, other: timedelta) -> Self:
        return self

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return datetime.__sub__(self, other) if isinstance(other, datetime) else self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return type(self).of, (self.beyond, self.tzinfo)


def read(text: str) -> datetime | None:
    """Parse the text of ``isoformat``; None if it is invalid."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return Beyond.of(text) if _WRITTEN.fullmatch(text) else None
