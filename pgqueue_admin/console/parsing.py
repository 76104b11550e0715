"""Whole numbers as they come in addresses and forms."""

import re

from pgqueue_admin.console.pagination import LARGEST

_WHOLE = re.compile(r"[0-9]{1,19}", re.ASCII)


def parse_int(text: str | None, most: int = LARGEST) -> int | None:
    """The number, or None for what is none or too large."""
    if not _WHOLE.fullmatch(text or ""):
        return None
    number = int(text or "")
    return number if number <= most else None


def parse_ints(text: str, most: int) -> str | None:
    """The numbers of ``8,3,3,12``, each once and in order, ``most`` at most; None without any."""
    numbers = {number for each in text.split(",", most)[:most] if (number := parse_int(each)) is not None}
    return ",".join(map(str, sorted(numbers))) or None
