"""Words for failures: the page's opening sentence, and the results of retries."""

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
    """For the unfiltered page. ``counts``: unacknowledged groups by state; ``uncovered``: failed messages in no group.

    While there are such messages, or uncounted groups, it does not claim that nothing is new.
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
    """For a search there is no verdict: other causes may need a look."""
    if not groups:
        return "No cause matches" if how == COUNTED else "No cause of those looked at matches"
    return pluralize(groups, "cause matches", "causes match", how)


def retried(retried: int, succeeded: int, dead_again: int) -> str:
    """Outcomes of retried messages: ``12 retried, all dead again``; "" if none was retried."""
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
    """A folded message for reading: ``card … declined``."""
    return _FOLDED.sub("…", message)


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else format_int(count)
