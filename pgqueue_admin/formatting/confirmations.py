"""Confirmation texts of acts on archived messages, shared by pages, Django admin and the shell. Pure."""

from pgqueue_admin.formatting import retention
from pgqueue_admin.formatting.numbers import pluralize

VERBS = {"retry": "Retry", "discard": "Discard", "restore": "Restore", "call back": "Call back", "purge": "Purge"}
KEEP = {
    "retry": "Leave them dead",
    "discard": "Keep them",
    "restore": "Leave them discarded",
    "call back": "Leave them sent",
    "purge": "Leave them there",
}
_EFFECT = {
    "retry": "Each goes back into the queue it failed in, without its failure headers. A retry cannot be undone; "
    "messages not yet sent can be cancelled at any time.",
    "discard": "Each leaves the dead and is kept.",
    "restore": "Each is dead again, ready to be retried.",
    "call back": "Each that still waits leaves its queue and is dead again. Messages that somebody has received or has "
    "in flight stay sent, and no receiver waits. A staged retry that still sends is paused.",
    "purge": "Each that waits there now leaves the queue and is kept. Messages that arrived since stay, and so do "
    "those in flight. The program that receives there never sees them, and is not notified.",
}


RESTORES = "Each leaves the bin in the same step; one that cannot be retried stays there."
_INTO_THE_BIN = ("discard", "purge")


def question(kind: str, count: int, environment: str) -> str:
    """``Retry 37 messages in production?``"""
    return f"{VERBS[kind]} {pluralize(count, 'message')} in {environment or 'unnamed'}?"


def effect(kind: str, archive_days: int) -> str:
    """What the act does to each message, and how to undo it. ``archive_days``: the archive's retention, 0 for ever."""
    return f"{_EFFECT[kind]} {retention.restorable(archive_days)}" if kind in _INTO_THE_BIN else _EFFECT[kind]


def discards_one(archive_days: int) -> str:
    return f"It leaves the dead and is kept. {retention.restorable(archive_days)}"
