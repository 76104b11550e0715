"""Which acts a person may do on an archived message, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.archive.crossings import why_held
from pgqueue_admin.archive.lease_retry import second_retry_refusal
from pgqueue_admin.archive.messages import why_no_retry
from pgqueue_admin.console import permissions
from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import confirmations
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import redirects
from pgqueue_admin.services.operations.targets import Target
from pgqueue_admin.services.unattended import UnattendedQueue, without_receiver


@dataclass(frozen=True, slots=True)
class MessageActions:
    """Acts that fit the message's state; a refusal is the sentence beside a disabled button."""

    target: Address | None
    retry: bool = False
    is_ruled: bool = False  # a retry rule sends it elsewhere, which its preview shows
    edit: bool = False
    edit_refusal: str = ""
    copy: bool = False
    discard: bool = False
    restore: bool = False
    crossing: int | None = None  # the crossing that carries it, if its page may be opened
    retry_refusal: str = ""
    discard_refusal: str = ""
    discard_effect: str = ""
    without_receiver: Sequence[UnattendedQueue] = ()
    other: str = ""  # what the target is if it is no input queue: it must be chosen by name
    runs: Sequence[str] = ()  # code of other roles that each insert runs as ours


def of_archived(
    person: Any, facts: MessageSummary, judged: Target | None, first_ending: int | None = None
) -> MessageActions:
    """``judged``: its target as the act would judge it; None if it has none. ``first_ending``: of a lease message ended
    twice, the archive id of the first ending, if this is the second.
    """
    row = facts.archived
    assert row is not None
    target: Address | None = row.target
    forbidden = permissions.refusal_on_page(person, "discard")
    is_ruled = row.state == "dead" and row.kind == "transport" and redirects.applies(row.message_type, row.queue)
    going = why_held(row) if row.crossing else ""
    second = second_retry_refusal(first_ending) if first_ending else ""
    unfit = (
        going
        or second
        or why_no_retry(row, is_redirected=is_ruled)
        or (not is_ruled and judged and judged.blocking_reason)
    )
    return MessageActions(
        target,
        retry=row.state == "dead",
        edit=row.state == "dead" and row.kind in ("transport", "lease") and not facts.unreadable and not second,
        edit_refusal=str(going or facts.withheld or permissions.refusal_on_page(person, "retry") or ""),
        copy=row.kind == "transport" and not facts.unreadable,
        discard=row.state == "dead",
        restore=row.state == "discarded",
        is_ruled=is_ruled,
        crossing=row.crossing_id if row.crossing and addresses.is_open("crossings") else None,
        retry_refusal=str(unfit or permissions.refusal_on_page(person, "retry") or ""),
        discard_refusal=str(going or forbidden or ""),
        discard_effect=confirmations.discards_one(settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]),
        without_receiver=without_receiver([queue_database().dialect.canonical(target)])
        if target and row.state == "dead"
        else (),
        other=judged.other if judged and not judged.blocking_reason else "",
        runs=judged.runs if judged and not judged.blocking_reason else (),
    )
