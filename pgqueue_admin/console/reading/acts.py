"""What a person may do with an archived message, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.console import access
from pgqueue_admin.console.board.receivers import Untended, untended
from pgqueue_admin.console.reading.facts import Facts
from pgqueue_admin.dialects import Address
from pgqueue_admin.operations.targets import Target
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
    other: str = ""  # what the target is, where it is no input queue: it has to be chosen by name
    runs: Sequence[str] = ()  # code of others that runs as ours


def of_archived(person: Any, facts: Facts, judged: Target | None) -> Acts:
    """``judged``: its target, as the act would judge it; None where it has none."""
    row = facts.archived
    assert row is not None
    target: Address | None = row.target
    forbidden = access.may(person, "discard")
    return Acts(
        target,
        retry=row.state == "dead",
        discard=row.state == "dead",
        restore=row.state == "discarded",
        retry_refusal=str(row.why_no_retry or (judged and judged.why_not) or access.may(person, "retry") or ""),
        discard_refusal=str(forbidden or ""),
        discard_effect=questions.discards_one(settings.PGQUEUE["ARCHIVE_DAYS"]),
        untended=untended([source().dialect.canonical(target)]) if target and row.state == "dead" else (),
        other=judged.other if judged and not judged.why_not else "",
        runs=judged.runs if judged and not judged.why_not else (),
    )
