"""What a person may do with an archived message, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.console import access
from pgqueue_admin.console.board.receivers import Untended, untended
from pgqueue_admin.console.reading.facts import Facts
from pgqueue_admin.dialects import Address
from pgqueue_admin.records.source import source
from pgqueue_admin.wording import questions


@dataclass(frozen=True, slots=True)
class Acts:
    """Which acts fit its state; a refusal is the sentence beside a disabled button."""

    target: Address | None
    retry: bool = False
    discard: bool = False
    restore: bool = False
    retry_refusal: str = ""
    discard_refusal: str = ""
    discard_effect: str = ""
    untended: Sequence[Untended] = ()


def of_archived(person: Any, facts: Facts) -> Acts:
    row = facts.archived
    assert row is not None
    target: Address | None = row.target
    forbidden = access.may(person, "discard")
    return Acts(
        target,
        retry=row.state == "dead",
        discard=row.state == "dead",
        restore=row.state == "discarded",
        retry_refusal=str(row.why_no_retry or _elsewhere(target) or access.may(person, "retry") or ""),
        discard_refusal=str(forbidden or ""),
        discard_effect=questions.discards_one(settings.PGQUEUE["ARCHIVE_DAYS"]),
        untended=untended([source().dialect.canonical(target)]) if target and row.state == "dead" else (),
    )


def _elsewhere(target: Address | None) -> str:
    if target is None or source().allows(target):
        return ""
    return f"Its queue is in schema {target.schema}, which is not watched here (QUEUE_SCHEMAS)."
