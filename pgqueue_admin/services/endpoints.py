"""Acts on endpoints: settings and desired state, each audited and announced to workers in one transaction.

The caller checks the right first (``services.permissions``); this module checks that the row is as the person read it.
``person`` is a Django user or a name, ``origin`` one of console, admin, command.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import AuditEntry, Endpoint, Process, endpoint_kinds
from pgqueue_admin.services.endpoint_change import (
    ActRefused,
    ChangedMeanwhile,
    EndpointAction,
    FaultySettings,
    NoSuchEndpoint,
    change,
    history,
    insert,
    locked,
)
from pgqueue_admin.services.permissions import name_of

SETTINGS = frozenset[str]().union(*endpoint_kinds.SETTINGS.values())


def save_settings(
    name: str, changes: Mapping[str, Any], person: Any, origin: str, *, version: int | None = None, reason: str = ""
) -> Endpoint:
    """Change settings (C5). Those of a foreign endpoint are declared: warnings use them, no process follows them."""
    refuse_unknown(changes)
    return change(name, changes, EndpointAction("set", person, origin, version, reason))


def refuse_unknown(changes: Mapping[str, Any]) -> None:
    if unknown := set(changes) - SETTINGS:
        raise FaultySettings({field: f"{field} is not a setting of an endpoint." for field in sorted(unknown)})


def create(name: str, facts: Mapping[str, Any], person: Any, origin: str) -> Endpoint:
    """Create an endpoint of ours. ``workers.processes.register_endpoint`` has created its queue tables before."""
    row = Endpoint(**{"name": name, "table": name, **facts})
    _refuse_second_on_lease_queue(row)
    return insert(
        row,
        EndpointAction("create", person, origin),
        {"schema": row.schema, "desired_processes": row.desired_processes},
    )


def _refuse_second_on_lease_queue(row: Endpoint) -> None:
    if row.kind != Endpoint.Kind.LEASE:
        return
    if other := Endpoint.objects.filter(kind=row.kind, ours=True).exclude(name=row.name).first():
        raise ActRefused(
            f"Nothing was changed. {other.name} works on the lease queue, and takes messages of every kind from it: "
            f"declare the handlers of {row.name} for {other.name}, and run more of its processes."
        )


def declare(name: str, address: Address, changes: Mapping[str, Any], person: Any, origin: str) -> Endpoint:
    """Record what a foreign endpoint's own code sets, so that warnings can judge it; change it if it is known."""
    refuse_unknown(changes)
    if Endpoint.objects.filter(name=name).exists():
        return save_settings(name, changes, person, origin)
    facts = {"schema": address.schema, "table": address.table, **changes}
    return insert(Endpoint(name=name, ours=False, **facts), EndpointAction("declare", person, origin), facts)


def withdraw(name: str, person: Any, origin: str) -> None:
    """Remove a declared endpoint, never one of ours. Raises NoSuchEndpoint."""
    with transaction.atomic():
        removed, _ = Endpoint.objects.filter(name=name, ours=False).delete()
        if not removed:
            raise NoSuchEndpoint(f"Nothing was withdrawn. There is no declared endpoint named {name}.")
        about = {"who": name_of(person), "verb": "withdraw", "noun": "endpoint", "subject": name}
        AuditEntry.objects.create(**about, origin=origin)


def scale(name: str, processes: int, person: Any, origin: str, *, version: int | None = None) -> Endpoint:
    """Set the number of processes, on all hosts together."""
    return change(name, {"desired_processes": processes}, EndpointAction("scale", person, origin, version))


def start(name: str, person: Any, origin: str, *, version: int | None = None) -> Endpoint:
    """Set at least one process, and start it now: this ends a backoff."""
    with transaction.atomic():
        processes = locked(name).desired_processes or 1
        waiting = Process.objects.filter(role="endpoint", endpoint=name, state=Process.State.BACK_OFF)
        waiting.update(next_start_at=Now())
        return change(
            name, {"desired_processes": processes}, EndpointAction("start", person, origin, version, always=True)
        )


def stop(name: str, person: Any, origin: str, *, version: int | None = None) -> Endpoint:
    """Set no processes: messages in flight are finished within the drain time."""
    return change(name, {"desired_processes": 0}, EndpointAction("stop", person, origin, version))


def pause(name: str, person: Any, origin: str, *, version: int | None = None) -> Endpoint:
    """Pause: processes stay and receive nothing."""
    return change(name, {"paused": True}, EndpointAction("pause", person, origin, version))


def resume(name: str, person: Any, origin: str, *, version: int | None = None) -> Endpoint:
    return change(name, {"paused": False}, EndpointAction("resume", person, origin, version))


def restart(name: str, person: Any, origin: str, *, version: int | None = None) -> Endpoint:
    """Replace every process, one at a time, the next once the new one is healthy
    (``workers.supervisor.desired_state``).
    """
    with transaction.atomic():
        row = locked(name)
        if row.ours and not row.desired_processes:
            raise ActRefused(f"Nothing was restarted. {name} is stopped: start it.")
        return change(name, {"restart_version": row.version + 1}, EndpointAction("restart", person, origin, version))


def undo(name: str, audit_id: int, person: Any, origin: str) -> Endpoint:
    """Restore the values before one change, if all that it set is still in force."""
    entry = history(name).get(id=audit_id)
    if not entry.before:
        raise ActRefused("Nothing was changed. That entry replaced nothing that could be put back.")
    if not is_of_settings(entry):
        raise ActRefused("Nothing was changed. Only settings can be put back: a start is taken back by a stop.")
    with transaction.atomic():
        row = locked(name)
        if any(getattr(row, field) != value for field, value in (entry.after or {}).items()):
            raise ChangedMeanwhile(row.name, history(name))
        return change(
            row.name, entry.before or {}, EndpointAction("undo", person, origin, reason=f"undoes change {entry.id}")
        )


def is_of_settings(entry: AuditEntry) -> bool:
    """Whether it changed only settings: processes and pauses have verbs and a right of their own."""
    return {*(entry.before or {}), *(entry.after or {})} <= SETTINGS


def last_changes(name: str) -> dict[str, AuditEntry]:
    """Return by field the newest entry that set it, which is the one ``undo`` takes."""
    last: dict[str, AuditEntry] = {}
    for entry in history(name)[:200]:
        for field in entry.after or {}:
            last.setdefault(field, entry)
    return last
