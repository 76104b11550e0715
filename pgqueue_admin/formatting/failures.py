"""How the state of failures is said: the sentence that opens the page, and what retrying did."""

import re

from pgqueue_admin.formatting.names import listed
from pgqueue_admin.formatting.numbers import COUNTED, NBSP, format_int, pluralize

WORDS = {"new": "new", "growing": "growing", "back": "back again", "quiet": "quiet"}
LOUD = ("new", "growing", "back")
_FOLDED = re.compile("<(?:id|text|n)>")
_NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip


def verdict(counts: dict[str, int], acknowledged: int, uncovered: str = "", *, how: str = COUNTED) -> str:
    """Of all there is. ``counts``: unacknowledged groups by state; ``uncovered``: what failed and is in no group.

    While there are such, or groups beyond those counted, nothing is said of what is new: one of them may be.
    """
    loud = [(state, counts.get(state, 0)) for state in LOUD if counts.get(state)]
    total, quiet = sum(count for _, count in loud), counts.get("quiet", 0)
    if total == 1:
        one = "One" if how == COUNTED else "At least one"
        return f"{one} cause needs a look: it is {WORDS[loud[0][0]]}"
    if loud:
        parts = listed([f"{_number(count)} {WORDS[state]}" for state, count in loud], len(loud))
        number = f"At least {_number(total)}" if how != COUNTED else _number(total).capitalize()
        return f"{number} causes need a look: {parts}"
    if how != COUNTED:
        return f"{pluralize(quiet + acknowledged, 'cause', how=how)} have dead messages, too many to judge each"
    known = ""
    if quiet:
        known = f"{pluralize(quiet, 'older cause')} {'is' if quiet == 1 else 'are'} open"
    elif acknowledged:
        known = f"{pluralize(acknowledged, 'cause')} {'is' if acknowledged == 1 else 'are'} acknowledged"
    if uncovered:
        return "; ".join(filter(None, [known, f"{uncovered} in no group yet"]))
    return f"Nothing new fails; {known}" if known else "No message is dead"


def matching(groups: int, how: str = COUNTED) -> str:
    """What a search found is no verdict: others may need a look."""
    if not groups:
        return "No cause matches" if how == COUNTED else "No cause of those looked at matches"
    return pluralize(groups, "cause matches", "causes match", how)


def retried(retried: int, succeeded: int, dead_again: int) -> str:
    """What became of those that were put back: ``12 retried, all dead again``; "" where none was."""
    total = retried + succeeded + dead_again
    if not total:
        return ""
    for count, became in ((succeeded, "succeeded"), (dead_again, "dead again")):
        if count == total:
            return f"{format_int(total)} retried, {'all ' if total > 1 else ''}{became}"
    if retried == total:
        return f"{format_int(total)} retried, outcome unknown"
    said = [(succeeded, "succeeded"), (dead_again, "dead again"), (retried, "unknown")]
    return f"{format_int(total)} retried: {', '.join(f'{format_int(n)}{NBSP}{word}' for n, word in said if n)}"


def readable(message: str) -> str:
    """A folded message as a person reads it: ``card … declined``."""
    return _FOLDED.sub("…", message)


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else format_int(count)
