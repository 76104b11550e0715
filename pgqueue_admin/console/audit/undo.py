"""Which audit entries can be undone, and where: only if the object is still as the entry left it."""

from collections.abc import Callable, Iterable
from functools import cache

from django.urls import NoReverseMatch, reverse

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models import AuditEntry, Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import endpoints, queues

_VERBS = {"set", "undo"}


def paths(entries: Iterable[AuditEntry]) -> dict[int, str]:
    """By entry: the URL that undoes it on POST, and checks again."""
    last = cache(endpoints.last_changes)
    return {entry.pk: path for entry in entries if (path := _path(entry, last))}


def _path(entry: AuditEntry, last: Callable[[str], dict[str, AuditEntry]]) -> str:
    try:
        if entry.noun == "endpoint" and entry.before and entry.verb in _VERBS:
            return _of_endpoint(entry, last(entry.subject))
        if entry.noun == "queue" and entry.before and entry.verb in _VERBS:
            return _of_queue(entry)
        if entry.noun == "subscription" and entry.verb == "unsubscribe" and entry.before:
            return reverse("subscribe_again", args=[entry.pk])
    except (NoReverseMatch, AddressUnreadable):
        return ""
    return ""


def _of_endpoint(entry: AuditEntry, last: dict[str, AuditEntry]) -> str:
    stands = bool(entry.after) and all(last.get(field) == entry for field in entry.after or {})
    if not stands or not endpoints.is_of_settings(entry):
        return ""
    return reverse("endpoint_undo", args=[entry.subject, entry.pk])


def _of_queue(entry: AuditEntry) -> str:
    address = queue_database().dialect.parse_address(entry.subject)
    found = Queue.objects.filter(schema=address.schema, table=address.table).first()
    if found is None or not queues.stands(found, entry):
        return ""
    return reverse("queue_settings_undo", args=[found.schema, found.table, entry.pk])
