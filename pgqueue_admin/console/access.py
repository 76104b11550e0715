"""Who may do what, as pages say it. The judgement is that of ``operations.rights``, as for every other way in."""

from typing import Any

from pgqueue_admin.operations import rights
from pgqueue_admin.operations.rights import PERMISSIONS, Refusal

__all__ = ["PERMISSIONS", "Refusal", "allowed", "may"]

WORDS = {"retry": "retry", "discard": "discard", "run": "run processes", "set": "change settings"}


def may(person: Any, verb: str) -> Refusal | None:
    """None if ``person`` may, and the database lets us."""
    return rights.may(person, verb) or rights.database_lets(verb)


def allowed(person: Any) -> list[str]:
    """What ``person`` may do, in words, for the menu under their name."""
    return [word for verb, word in WORDS.items() if not rights.may(person, verb)]
