"""Makes a form that creates a message send only once: neither a second click nor going back sends another.

Each rendered form has a key of its own, stored in the audit's intent and entry of what it sent.
"""

import re
from typing import Any
from uuid import uuid4

from django.db import transaction

from pgqueue_admin.models import AuditEntry, AuditIntent
from pgqueue_admin.models.raw_sql import console_sql, rows_of
from pgqueue_admin.services.operations.errors import AlreadyDecided, at

_KEY = re.compile(r"[0-9a-f]{32}")
_NEWEST = 100  # audit entries of its queue that are searched
_AGAIN = "Nothing more was sent"


def key(given: str | None) -> str:
    """Return the key of a submitted form; empty: it has none."""
    return given if given and _KEY.fullmatch(given) else ""


def new_key() -> str:
    return uuid4().hex


def noted(form: str) -> dict[str, str]:
    """Return the form's part of the entry's ``after``; empty: no form."""
    return {"form": form} if form else {}


def claim(form: str, intent: AuditIntent, about: dict[str, Any]) -> None:
    """Claim the form before anything is sent. One of several concurrent requests wins, and the others leave no claim. A
    killed request keeps its claim. Raises AlreadyDecided.
    """
    if not form:
        return
    with transaction.atomic():
        rows_of(console_sql.advisory_locks.form(), {"form": form})
        if AuditIntent.objects.filter(entry__after__form=form).exists():
            raise AlreadyDecided(f"{_AGAIN}: this form was sent twice, and the other one is on its way. Look at it.")
        _refuse_sent(form, about)
        intent.entry["after"] = {**(intent.entry.get("after") or {}), **noted(form)}
        intent.save(update_fields=["entry"])


def _refuse_sent(form: str, about: dict[str, Any]) -> None:
    newest = AuditEntry._base_manager.filter(noun=about["noun"], subject=about["subject"]).order_by("-pk")[:_NEWEST]
    for entry in newest:
        after = entry.after or {}
        if after.get("form") == form:
            told = "may have sent it" if "outcome" in after else "has sent it"
            again = "To send another one, open the form anew."
            raise AlreadyDecided(f"{_AGAIN}: {entry.who} {told} {at(entry.at)}. {again}", entry.who, entry.at)
