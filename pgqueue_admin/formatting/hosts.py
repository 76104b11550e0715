"""Warning of a lost host: what ran there, and whether other hosts took over."""

from collections.abc import Sequence

from pgqueue_admin.formatting import names
from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.formatting.warnings import WarningText


def gone(
    ran: Sequence[tuple[str, int]], short: Sequence[tuple[str, int, int]], others: bool, limit: float
) -> WarningText:
    """``ran``: endpoint and number of its processes; ``short``: endpoint, running and desired processes."""
    count = sum(number for _, number in ran)
    of = names.listed([f"{number:,} of {endpoint}" for endpoint, number in ran])
    ended = pluralize(count, "process", "processes")
    there = f"{ended} ran there: {of}" if ran else "No process of an endpoint ran there"
    taken = _taken_over(ran, short, others)
    return WarningText(
        f"Its supervisor is not heard from any more, threshold {plain(limit)}",
        f"{ended} ran there",
        plain(limit),
        f"{there}. {taken}It is off, or cut off from the console's database. Start it, or its supervisor "
        "(manage.py supervise), again; if it is gone for good, say so on Workers.",
    )


def _taken_over(ran: Sequence[tuple[str, int]], short: Sequence[tuple[str, int, int]], others: bool) -> str:
    if not others:
        return "No other supervisor is there to run anything. "
    if not ran:
        return ""
    if not short:
        return "Other hosts have taken them over: as many run as are wanted. "
    missing = names.listed([f"{runs:,} of {want:,} of {endpoint}" for endpoint, runs, want in short])
    return f"Other hosts have not taken all of them over: {missing} run. "
