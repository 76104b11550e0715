"""Who may do what, as pages say it. The judgement is that of ``operations.rights``, as for every other way in."""

from typing import Any

from pgqueue_admin.services import permissions
from pgqueue_admin.services.permissions import PERMISSIONS, Refusal

__all__ = ["PERMISSIONS", "Refusal", "allowed", "refusal_for"]

WORDS = {
    "retry": "retry",
    "discard": "discard",
    "run": "run processes",
    "set": "change settings",
    "schedule": "change schedules",
}


def refusal_for(person: Any, verb: str) -> Refusal | None:
    """None if ``person`` may, and the database lets us."""
    return permissions.refusal_for(person, verb) or permissions.database_lets(verb)


def allowed(person: Any) -> list[str]:
    """What ``person`` may do, in words, for the menu under their name."""
    return [word for verb, word in WORDS.items() if not permissions.refusal_for(person, verb)]
