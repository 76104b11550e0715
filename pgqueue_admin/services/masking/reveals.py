"""Reveals masked parts to a person with the right, for a while and with a reason; each reveal is audited."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import AuditEntry, MaskingReveal, database_clock
from pgqueue_admin.models.queue_database import database_of
from pgqueue_admin.services import content_access
from pgqueue_admin.services.permissions import name_of, refusal_for

MINUTES = 10
LASTS = timedelta(minutes=MINUTES)
MOST_OPENED = 200  # messages of one reveal that are audited one by one


class RevealRefused(Exception):
    """Nothing was revealed; the message says why."""


class RevealNotAllowed(RevealRefused):
    """A right is missing."""


def begin(person: Any, reason: str, where: str, origin: str) -> datetime:
    """Begin a reveal and return its end. ``where``: the page. Raises RevealRefused."""
    for verb in ("read", "reveal"):
        if refusal := refusal_for(person, verb):
            raise RevealNotAllowed(f"Nothing was revealed: it {refusal}.")
    if not reason:
        raise RevealRefused("Nothing was revealed: a reason is asked for.")
    now = database_clock.now()
    until = now + LASTS
    with transaction.atomic():
        about = {"began_at": now, "ends_at": until, "reason": reason, "opened": []}
        MaskingReveal.objects.update_or_create(person=person, defaults=about)
        _note("reveal", person, origin, reason, where, {"until": until.isoformat(timespec="seconds")})
    return until


def end(person: Any, where: str, origin: str) -> bool:
    """End the reveal; return whether there was one."""
    now = database_clock.now()
    with transaction.atomic():
        ended = MaskingReveal.objects.filter(person=person, ends_at__gt=now).update(ends_at=now)
        if ended:
            _note("hide", person, origin, "", where)
    return bool(ended)


def opened_archived(person: Any, archive_id: int, queue: str | None, origin: str = "console") -> None:
    opened(person, queue or "", f"archive {archive_id}", origin, archive_id=archive_id)


def opened_waiting(person: Any, queue: Address, row_id: Any) -> None:
    name = database_of(queue).dialect.canonical(queue)
    opened(person, name, f"{name} {row_id}", row_id=str(row_id))


def opened(person: Any, queue: str, key: str, origin: str = "console", **about: Any) -> None:
    """Audit that a message was opened unmasked: one entry per message, up to MOST_OPENED. Without a reveal do nothing.
    ``key``: identifies the message among all.
    """
    if content_access.of(person).revealed_until is None:
        return
    with transaction.atomic():
        reveal = MaskingReveal.objects.select_for_update().filter(person=person).first()
        if reveal is None or key in reveal.opened or len(reveal.opened) > MOST_OPENED:
            return
        is_more = len(reveal.opened) == MOST_OPENED
        reveal.opened.append("more" if is_more else key)
        reveal.save(update_fields=["opened"])
        said = {"subject": f"more than {MOST_OPENED} messages, the others are not listed", "noun": "masking"}
        one = {"subject": (queue or "unknown queue")[:400], "noun": "message", "after": about}
        AuditEntry.objects.create(
            verb="open", who=name_of(person), origin=origin, reason=reveal.reason, **(said if is_more else one)
        )


def lasts(person: Any) -> bool:
    """Whether the reveal still lasts; queried anew where work outlasts a request."""
    return MaskingReveal.objects.filter(person=person, ends_at__gt=database_clock.now()).exists()


def _note(verb: str, person: Any, origin: str, reason: str, where: str, after: Any = None) -> None:
    about = {"who": name_of(person), "origin": origin, "reason": reason, "after": after}
    AuditEntry.objects.create(verb=verb, noun="masking", subject=where[:400] or "masked parts", **about)
