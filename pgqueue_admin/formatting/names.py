"""Line breaks in long names, and lists of names."""

import re
from collections.abc import Sequence

_BREAK = re.compile(r"(?<=[._])(?=[^._])|(?<=[a-z0-9])(?=[A-Z])")


def pieces(name: str) -> list[str]:
    """The parts between which a name may break: after a dot or underscore, before a capital."""
    return _BREAK.split(name)


def listed(names: Sequence[str], most: int = 3) -> str:
    """``Billing, Shipping and 4 more``."""
    if len(names) <= most:
        return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"
