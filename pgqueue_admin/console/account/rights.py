"""A person's rights, one by one, and who granted each."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Permission, User

from pgqueue_admin.models import Operation
from pgqueue_admin.services import permissions

# What each right allows, on a person's page and in docs/reference/rights.md.
ALLOWS = {
    "retry_message": "Retry dead messages, also edited, try without effect, call back; settle crossings; move, run,"
    " send and copy messages; publish and release lease messages; send from an outbox",
    "discard_message": "Discard, restore and purge messages, take waiting and delayed ones out, end a lease message",
    "run_endpoint": "Start, stop, scale, pause and restart endpoints; read their logs, with the right to read messages;"
    " run History; give up a lost host",
    "change_settings": "Change settings, targets and what may be done to a queue; retry and lease rules;"
    " switches of others' outboxes; end subscriptions; acknowledge, assign; test mail;"
    " export messages and the audit; share views",
    "change_schedule": "Add, change, pause, remove and send schedules",
    "read_message": "Read bodies, header values and what exceptions say; search in them; edit messages",
    "reveal_masked": "See masked parts of messages for ten minutes, with a reason; change the masking rules",
}


@dataclass(frozen=True, slots=True)
class RightRow:
    """``given``: who granted it, empty if not granted. ``held_back``: why the database role prevents its actions."""

    name: str
    allows: str
    given: str
    held_back: str


def rows(person: Any) -> list[RightRow]:
    """In the order of Django admin; two statements."""
    own = set(
        Permission.objects.filter(user=person, content_type__app_label="pgqueue").values_list("codename", flat=True)
    )
    groups: dict[str, list[str]] = {}
    through = Permission.objects.filter(group__user=person, content_type__app_label="pgqueue")
    for codename, group in through.values_list("codename", "group__name").order_by("group__name"):
        groups.setdefault(codename, []).append(group)
    return [
        RightRow(
            name, ALLOWS[codename], _given(person, codename in own, groups.get(codename, [])), _held_back(codename)
        )
        for codename, name in Operation._meta.permissions
    ]


def _given(person: User, is_own: bool, groups: list[str]) -> str:
    if person.is_superuser:
        return "as a superuser"
    to = [*(["to you"] if is_own else []), *(f"by the group {group}" for group in groups)]
    return ", ".join(to)


def _held_back(codename: str) -> str:
    """Set only if every action of the right changes queues: the role does not limit other actions."""
    verbs = [verb for verb, right in permissions.PERMISSIONS.items() if right == f"pgqueue.{codename}"]
    refusals = [permissions.database_lets(verb) for verb in verbs]
    return str(refusals[0]) if refusals and all(refusals) else ""
