"""Who may do what, as pages say it. The judgement is that of ``services.permissions``, as for every other way in."""

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
    """None if ``person`` may, and the role that the queues are read with may act on them."""
    return permissions.refusal_for(person, verb) or permissions.database_lets(verb)


def allowed(person: Any) -> list[str]:
    """What ``person`` may do, in words, for the menu under their name."""
    return [word for verb, word in WORDS.items() if not permissions.refusal_for(person, verb)]
