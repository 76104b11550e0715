"""Gives up a lost host: it leaves the Workers page, and returns with its next heartbeat."""

from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from pgqueue_admin.models import AuditEntry, Process, notify, processes
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.permissions import name_of


def give_up(host: str, person: Any, origin: str) -> None:
    """End its processes as of their last heartbeat. Raises ActRefused if its supervisor reports or is unknown."""
    open_rows = Process.objects.filter(host=host, ended_at=None)
    with transaction.atomic():
        if processes.heard_of().filter(host=host, role="supervisor").exists():
            raise ActRefused(f"Nothing was changed. {host} has been heard from again.")
        silent = open_rows.filter(heartbeat_at__lt=Now() - processes.HEARTBEAT_LOST)
        facts = {"state": Process.State.LOST, "dismissed_at": Now(), "ended_at": F("heartbeat_at")}
        if not silent.filter(role="supervisor").exists():
            raise ActRefused(f"Nothing was changed. No supervisor of {host} is missing: it ended, or was given up.")
        count = silent.update(**facts)
        who = name_of(person)
        AuditEntry.objects.create(who=who, verb="give up", noun="host", subject=host, count=count, origin=origin)
        notify.announce(notify.PROCESS)


def back(row: QuerySet[Process], facts: dict[str, Any]) -> bool:
    """Mark a lost process as running, with the ``facts`` of its heartbeat; return whether it was lost.

    It was given up, or its supervisor did not find it: two containers of one name each have their own pids.
    """
    lost = row.filter(state=Process.State.LOST)
    return bool(lost.update(dismissed_at=None, ended_at=None, **facts))
