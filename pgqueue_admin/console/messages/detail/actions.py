"""What a person may do with an archived message, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.console import permissions
from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import confirmations
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations.targets import Target
from pgqueue_admin.services.unattended import UnattendedQueue, untended


@dataclass(frozen=True, slots=True)
class MessageActions:
    """Which acts fit its state; a refusal is the sentence beside a disabled button."""

    target: Address | None
    retry: bool = False
    edit: bool = False
    discard: bool = False
    restore: bool = False
    retry_refusal: str = ""
    discard_refusal: str = ""
    discard_effect: str = ""
    untended: Sequence[UnattendedQueue] = ()
    other: str = ""  # what the target is, where it is no input queue: it has to be chosen by name
    runs: Sequence[str] = ()  # code of others that runs as ours


def of_archived(person: Any, facts: MessageSummary, judged: Target | None) -> MessageActions:
    """``judged``: its target, as the act would judge it; None where it has none."""
    row = facts.archived
    assert row is not None
    target: Address | None = row.target
    forbidden = permissions.refusal_for(person, "discard")
    return MessageActions(
        target,
        retry=row.state == "dead",
        edit=row.state == "dead" and row.kind == "transport" and not facts.unreadable,
        discard=row.state == "dead",
        restore=row.state == "discarded",
        retry_refusal=str(
            row.why_no_retry or (judged and judged.why_not) or permissions.refusal_for(person, "retry") or ""
        ),
        discard_refusal=str(forbidden or ""),
        discard_effect=confirmations.discards_one(settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]),
        untended=untended([queue_database().dialect.canonical(target)]) if target and row.state == "dead" else (),
        other=judged.other if judged and not judged.why_not else "",
        runs=judged.runs if judged and not judged.why_not else (),
    )
