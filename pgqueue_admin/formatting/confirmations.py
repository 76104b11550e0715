"""What is said before an act on archived messages: one set of words for pages, Django admin and a shell. Pure."""

from pgqueue_admin.formatting import retention
from pgqueue_admin.formatting.numbers import pluralize

VERBS = {"retry": "Retry", "discard": "Discard", "restore": "Restore"}
KEEP = {"retry": "Leave them dead", "discard": "Keep them", "restore": "Leave them discarded"}
_EFFECT = {
    "retry": "Each goes back into the queue it failed in, without its failure headers. A retry cannot be undone; "
    "what is not yet sent can be cancelled at any time.",
    "discard": "Each leaves the dead and is kept.",
    "restore": "Each lies dead again, ready to be retried.",
}


def question(kind: str, count: int, environment: str) -> str:
    """``Retry 37 messages in production?``"""
    return f"{VERBS[kind]} {pluralize(count, 'message')} in {environment or 'unnamed'}?"


def effect(kind: str, archive_days: int) -> str:
    """What it does to each of many, and the way back. ``archive_days``: how long the archive keeps them, 0 for ever."""
    return f"{_EFFECT[kind]} {retention.restorable(archive_days)}" if kind == "discard" else _EFFECT[kind]


def discards_one(archive_days: int) -> str:
    return f"It leaves the dead and is kept. {retention.restorable(archive_days)}"
