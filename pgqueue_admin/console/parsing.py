"""Parses whole numbers in addresses and forms."""

import re

from pgqueue_admin.console.pagination import LARGEST

_WHOLE = re.compile(r"[0-9]{1,19}", re.ASCII)


def parse_int(text: str | None, most: int = LARGEST) -> int | None:
    """The number, or None if the text is no number or exceeds ``most``."""
    if not _WHOLE.fullmatch(text or ""):
        return None
    number = int(text or "")
    return number if number <= most else None


def parse_ints(text: str, most: int) -> str | None:
    """The distinct numbers of ``8,3,3,12`` in ascending order, at most ``most``; None if there are none."""
    numbers = {number for each in text.split(",", most)[:most] if (number := parse_int(each)) is not None}
    return ",".join(map(str, sorted(numbers))) or None
