"""Retry rules, which redirect retries of renamed queues: created and removed here. Each act is audited."""

from typing import Any

from django.db import IntegrityError, transaction

from pgqueue_admin.models import AuditEntry, RetryRule
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import redirects
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.permissions import name_of, refusal_for

NOUN = "retry rule"
LONGEST = 400
_NOTHING = "Nothing was changed"


def create(message_type: str, queue: str, target: str, person: Any, origin: str, reason: str = "") -> RetryRule:
    """``queue`` and ``target``: addresses as typed. Raises OperationRefused, DatabaseError."""
    _allow(person)
    about = {"message_type": _type(message_type), "queue": _canonical(queue), "target": _canonical(target)}
    _check(about)
    try:
        with transaction.atomic():
            rule = RetryRule.objects.create(**about, who=name_of(person), reason=reason)
            _audit(rule, "create", person, origin, reason, after=about)
    except IntegrityError:
        raise AlreadyDecided(f"{_NOTHING}: there is a rule for just that. Remove it first.") from None
    return rule


def remove(number: int, person: Any, origin: str, reason: str = "") -> RetryRule:
    """Remove a rule; operations started with it keep it. Raises OperationRefused."""
    _allow(person)
    with transaction.atomic():
        rule = RetryRule.objects.select_for_update().filter(pk=number).first()
        if rule is None:
            raise AlreadyDecided(f"{_NOTHING}: rule {number} is there no more.")
        before = {"message_type": rule.message_type, "queue": rule.queue, "target": rule.target}
        _audit(rule, "remove", person, origin, reason, before=before)
        RetryRule.objects.filter(pk=number).delete()
    return rule


def _allow(person: Any) -> None:
    if refusal := refusal_for(person, "set"):
        raise OperationNotAllowed(f"{_NOTHING}: {refusal}.")


def _type(text: str) -> str:
    text = text.strip()
    if len(text) > LONGEST or any(not each.isprintable() for each in text):
        raise OperationRefused(f"{_NOTHING}: that is no message type. Type one such as Shop.PlaceOrder, or Shop.*.")
    return text


def _canonical(text: str) -> str:
    if not text.strip():
        return ""
    address = next(iter(parsed([text.strip()])), None)
    name = queue_database().dialect.canonical(address) if address and "\0" not in text else ""
    if not name or len(name) > LONGEST:
        raise OperationRefused(f"{_NOTHING}: “{text.strip()[:80]}” is no queue address.")
    return name


def _check(about: dict[str, str]) -> None:
    if not (about["message_type"].strip("*") or about["queue"]):
        raise OperationRefused(f"{_NOTHING}: name a message type, or the queue where they died.")
    if about["queue"] == about["target"]:
        raise OperationRefused(f"{_NOTHING}: they go to that queue without a rule.")
    with queue_database().read_session() as connection:
        if why := redirects.blocking_reason(connection, next(iter(parsed([about["target"]])), None)):
            raise OperationRefused(f"{_NOTHING}. {why}")


def _audit(rule: RetryRule, verb: str, person: Any, origin: str, reason: str, **more: Any) -> None:
    about = {"who": name_of(person), "noun": NOUN, "subject": str(rule.pk), "origin": origin, "reason": reason}
    AuditEntry.objects.create(verb=verb, **about, **more)
