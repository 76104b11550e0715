"""The sentence that opens the page: what a person would say who has looked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.html import format_html

from pgqueue_admin.console import parts
from pgqueue_admin.console.board.rows import Row
from pgqueue_admin.console.overview.needs import Need
from pgqueue_admin.records.models import Alert
from pgqueue_admin.wording import figures, names, visible
from pgqueue_admin.wording.durations import plain


@dataclass(frozen=True, slots=True)
class Verdict:
    tone: str  # crit, warn, good, blind
    sentence: str
    title: str
    rest: str

    @property
    def spoken(self) -> str:
        """Without a time, which is told in markup."""
        return self.title if self.tone == "blind" else self.sentence


def judge(
    needs: Sequence[Need], alerts: Sequence[Alert], rows: Sequence[Row], blind_since: datetime | None, why: str = ""
) -> Verdict:
    """``blind_since``: the newest sample, when it is too old to be believed. ``why``: as a sampler says that runs."""
    if blind_since is not None:
        return _blind(blind_since, visible.first_line(why))
    warnings = [alert for alert in alerts if alert.severity == "warning" and alert.acknowledged_at is None]
    if needs:
        return _needed(needs, warnings, rows)
    if warnings:
        count = figures.counted(len(warnings), "warning")
        return Verdict("warn", f"Nothing is broken; {count} can wait", f"{count} can wait", _within(rows, ()))
    return _calm(rows, [alert for alert in alerts if alert.acknowledged_at])


def _blind(since: datetime, why: str) -> Verdict:
    kept = "Everything below is the last that was seen. Nothing was lost."
    said = format_html("The console cannot see: no sample since {}", parts.when(since))
    if not why:
        return Verdict("blind", said, "No sample", kept)
    short = why.partition(". ")[0].replace("The database", "the queues’ database", 1).removesuffix(".")
    rest = format_html("The sampler runs, and was told: {} It tries again each time. {}", why, kept)
    return Verdict("blind", format_html("{}: {}", said, short), "The queues cannot be read", rest)


def _needed(needs: Sequence[Need], warnings: Sequence[Alert], rows: Sequence[Row]) -> Verdict:
    noun = "queue" if all(need.is_queue for need in needs) else "thing"
    one = len(needs) == 1
    sentence = f"{figures.in_words(len(needs))} {noun if one else noun + 's'} {'needs' if one else 'need'} you"
    title = f"{len(needs)} need{'s' if one else ''} you: {names.listed([need.where for need in needs], 2)}"
    rest = f"{_untabled(needs)} {_within(rows, needs)}".strip()
    if warnings:
        rest += f" {figures.counted(len(warnings), 'warning')} can wait."
    return Verdict("crit", sentence[0].upper() + sentence[1:], title, rest)


def _untabled(needs: Sequence[Need]) -> str:
    """Why there are more than Queues counts off target."""
    number = sum(need.is_queue and not need.has_table for need in needs)
    if not number:
        return ""
    said = "is an address" if number == 1 else "are addresses"
    return f"{number:,} of them {said} without a table, which Queues does not list."


def _within(rows: Sequence[Row], needs: Sequence[Need]) -> str:
    needed = {need.key for need in needs}
    fine = sum(row.verdict.state == "ok" and row.key not in needed for row in _measured(rows))
    if not fine:
        return ""
    other = "other " if needs else ""
    noun = f"{other}queue is" if fine == 1 else f"{other}queues are"
    return f"{fine:,} {noun} within target."


def _calm(rows: Sequence[Row], acknowledged: Sequence[Alert]) -> Verdict:
    measured = _measured(rows)
    if rows and not measured:
        often = f"The sampler looks every {plain(settings.PGQUEUE['SAMPLE_SECONDS'])}."
        return Verdict("blind", "No queue was measured yet", "No sample", often)
    fine = sum(row.verdict.state == "ok" for row in measured)
    quiet = "acknowledged warning stays quiet", "acknowledged warnings stay quiet"
    rest = f"{figures.counted(len(acknowledged), *quiet)}." if acknowledged else ""
    if fine == len(measured):
        said = "The only queue is within target" if fine == 1 else f"All {fine:,} queues are within target"
        return Verdict("good", said, "All within target", rest)
    return Verdict("good", f"{fine:,} of {len(measured):,} queues are within target", "Nothing needs you", rest)


def _measured(rows: Sequence[Row]) -> list[Row]:
    """What was never measured is within no target."""
    return [row for row in rows if row.latest]
