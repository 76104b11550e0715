"""One change of an endpoint's row: locked, guarded, validated, and written with its audit entry and wake-up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from pgqueue_admin.models import AuditEntry, Endpoint, Queue, endpoint_kinds, notify
from pgqueue_admin.models.endpoint_validation import faults

DESIRED_STATE = frozenset({"desired_processes", "paused", "restart_version"})


class ActRefused(Exception):
    """Nothing was changed."""


class NoSuchEndpoint(ActRefused):
    """There is no endpoint of this name."""


class NotManaged(ActRefused):
    """The endpoint runs elsewhere: its processes cannot be started, stopped or paused from here."""


class FaultySettings(ActRefused):
    """Invalid values: ``faults`` has a sentence per field."""

    def __init__(self, faults: dict[str, str]):
        self.faults = faults
        super().__init__("Nothing was changed. " + " ".join(faults.values()))


class ChangedMeanwhile(ActRefused):
    """Somebody else changed the endpoint first: ``who``, ``when`` and ``what`` come from its last audit entry."""

    def __init__(self, name: str, history: QuerySet[AuditEntry]):
        self.what = last = history.first()
        self.who: str = last.who if last else "somebody"
        self.when: datetime | None = last.at if last else None
        at = f" at {last.at:%H:%M:%S} UTC" if last else ""
        super().__init__(f"Nothing was changed. {self.who} changed {name}{at}, after you opened it.")


@dataclass(frozen=True)
class EndpointAction:
    """Who does what, from where, and which version of the row they saw."""

    verb: str
    person: Any
    origin: str
    version: int | None = None
    reason: str = ""
    always: bool = False  # write and wake workers even if nothing changes

    @property
    def who(self) -> str:
        return self.person if isinstance(self.person, str) else self.person.get_username()


def change(name: str, changes: Mapping[str, Any], act: EndpointAction) -> Endpoint:
    """Return the changed row. Raises an ActRefused, and then nothing was changed."""
    with transaction.atomic():
        row = locked(name)
        _refuse_if_foreign(row, changes)
        _refuse_of_other_kind(row, changes)
        if act.version not in (None, row.version):
            raise ChangedMeanwhile(name, history(name))
        before = {field: getattr(row, field) for field in changes if getattr(row, field) != changes[field]}
        if before or act.always:
            _write(row, before, {field: changes[field] for field in before}, act)
        return row


def history(name: str) -> QuerySet[AuditEntry]:
    """Audit entries of an endpoint, newest first."""
    return AuditEntry.objects.filter(noun="endpoint", subject=name)


def insert(row: Endpoint, act: EndpointAction, told: dict[str, Any]) -> Endpoint:
    """Insert a row, with its wake-up and its audit entry. ``told``: the entry's ``after``."""
    if found := faults(row):
        raise FaultySettings(found)
    with transaction.atomic():
        if Endpoint.objects.filter(name=row.name).exists():
            raise ActRefused(f"Nothing was changed. There is an endpoint named {row.name} already.")
        row.save(force_insert=True)
        if row.ours:  # its queue may be known already; the sampler links one that it finds later
            Queue.objects.filter(schema=row.schema, table=row.table).update(endpoint=row.name)
        _tell(row, act, before=None, after=told)
    return row


def locked(name: str) -> Endpoint:
    """Lock and return the row, until the transaction ends."""
    try:
        return Endpoint.objects.select_for_update().get(name=name)
    except Endpoint.DoesNotExist:
        raise NoSuchEndpoint(f"There is no endpoint named {name}.") from None


def _refuse_if_foreign(row: Endpoint, changes: Mapping[str, Any]) -> None:
    if not row.ours and DESIRED_STATE & set(changes):
        raise NotManaged(f"{row.name} is not run by this console: start, stop and pause it where it runs.")


def _refuse_of_other_kind(row: Endpoint, changes: Mapping[str, Any]) -> None:
    if others := sorted(set(changes) - DESIRED_STATE - endpoint_kinds.settings_of(row)):
        raise FaultySettings({field: f"An endpoint of the kind {row.kind} has no {field}." for field in others})


def _write(row: Endpoint, before: dict[str, Any], after: dict[str, Any], act: EndpointAction) -> None:
    for field, value in after.items():
        setattr(row, field, value)
    if found := faults(row):
        raise FaultySettings(found)
    row.version += 1
    row.save(update_fields=[*after, "version"])
    Endpoint.objects.filter(pk=row.pk).update(changed_at=Now())  # the database's clock, which workers compare with
    row.refresh_from_db(fields=["changed_at"])
    _tell(row, act, before, after)


def _tell(row: Endpoint, act: EndpointAction, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
    facts = {"before": before, "after": after, "reason": act.reason, "origin": act.origin}
    AuditEntry.objects.create(who=act.who, verb=act.verb, noun="endpoint", subject=row.name, **facts)
    notify.announce(notify.ENDPOINT, row.name)
