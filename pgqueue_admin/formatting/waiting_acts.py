"""Texts before and after an act on waiting messages. Pure."""

from typing import NamedTuple

from pgqueue_admin.formatting import retention
from pgqueue_admin.formatting.numbers import pluralize


class WaitingActWords(NamedTuple):
    """``button``: the verb, followed by the count. ``done``: the act in the past tense."""

    button: str
    keep: str
    into: str
    done: str


WORDS = {
    "discard": WaitingActWords(
        "Discard", "Keep {}", "the bin, from where each can be restored to the dead", "discarded from"
    ),
    "move_out": WaitingActWords(
        "Move {} to dead",
        "Keep {}",
        "the archive, as dead though it had not failed; it is mailed like a death",
        "moved to dead out of",
    ),
    "move": WaitingActWords(
        "Move", "Leave {} there", "another queue, with all it has; there it is received last", "moved out of"
    ),
    "run_now": WaitingActWords(
        "Run {} now",
        "Let {} wait",
        "{queue}, as when it is due; from there it goes on as its headers say",
        "sent on from",
    ),
    "cancel": WaitingActWords(
        "Cancel", "Let {} wait", "the bin, from where it can be restored to the dead", "cancelled in"
    ),
}


def button(name: str, count: int) -> str:
    """``Discard 3``, ``Run 1 now``."""
    pattern = WORDS[name].button
    return pattern.format(count) if "{}" in pattern else f"{pattern} {count}"


def keep(name: str, count: int) -> str:
    return WORDS[name].keep.format("it" if count == 1 else "them")


def question(name: str, count: int, queue: str, environment: str) -> str:
    """``Discard 3 messages of Sales in production?``"""
    verb, _, rest = button(name, count).partition(str(count))
    return f"{verb}{pluralize(count, 'message')} of {queue}{rest} in {environment or 'unnamed'}?"


def into(name: str, queue: str) -> str:
    return WORDS[name].into.format(queue=queue)


def result(name: str, count: int, queue: str, target: str, archive_days: int) -> str:
    """``3 messages discarded from Sales. Restore brings it back for 30 days.``"""
    said = f"{pluralize(count, 'message')} {WORDS[name].done} {queue}{f' to {target}' if target else ''}."
    return f"{said} {retention.restorable(archive_days)}" if name in ("discard", "cancel") else said
