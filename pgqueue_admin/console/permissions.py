"""What a person may do, in the words of pages. ``services.permissions`` decides, as for the API and Django admin."""

from typing import Any

from pgqueue_admin.services import permissions
from pgqueue_admin.services.permissions import Refusal

WORDS = {
    "retry": "retry",
    "discard": "discard",
    "run": "run processes",
    "set": "change settings",
    "schedule": "change schedules",
}


def refusal_on_page(person: Any, verb: str) -> Refusal | None:
    """None if ``person`` may act, and the database role that reads the queues may too."""
    return permissions.refusal_for(person, verb) or permissions.database_lets(verb)


def allowed(person: Any) -> list[str]:
    """What ``person`` may do, in words, for the menu under their name."""
    return [word for verb, word in WORDS.items() if not permissions.refusal_for(person, verb)]
