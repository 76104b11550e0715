"""The verdict sentence at the top of Overview."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import components, verdicts
from pgqueue_admin.console.overview.needs_attention import NeedRow, ShownNeeds
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.console.queue_row.tally import tally
from pgqueue_admin.console.verdicts import Verdict
from pgqueue_admin.formatting import escape_invisible, names, numbers
from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.models import Alert
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.models.readability import UnreadQueues


@dataclass(frozen=True, slots=True)
class Blind:
    """``since``: the newest sample that can be trusted. ``why``: the error of the running sampler; with ``sight``, the
    error of most of the unreadable queues.
    """

    since: datetime
    why: str = ""
    sight: UnreadQueues | None = None


def judge(
    needs: ShownNeeds,
    alerts: Sequence[Alert],
    rows: Sequence[QueueRow],
    standings: Sequence[Standing],
    blind: Blind | None,
) -> Verdict:
    if blind:
        return _blind(blind)
    said = _judged(needs, alerts, rows)
    halted = [verdicts.halted(each) for each in standings if each.state in verdicts.HALTED and not each.is_cause]
    if not halted:
        return said
    more = components.joined([*halted[: verdicts.MOST], *_more(len(halted) - verdicts.MOST)], ". ")
    return replace(said, rest=format_html("{} {}.", said.rest, more))


def _more(number: int) -> list[SafeString]:
    return (
        [format_html("{} not run", numbers.pluralize(number, "more endpoint does", "more endpoints do"))]
        if number > 0
        else []
    )


def _judged(needs: ShownNeeds, alerts: Sequence[Alert], rows: Sequence[QueueRow]) -> Verdict:
    warnings = [alert for alert in alerts if alert.severity == "warning" and alert.acknowledged_at is None]
    if needs.open:
        return _needed(needs, warnings, rows)
    if unread := tally(rows).unread:
        return _unread(unread, warnings, rows)
    if warnings:
        count = numbers.pluralize(len(warnings), "warning")
        return Verdict("warn", f"Nothing is broken; {count} can wait", f"{count} can wait", _within(rows, ()))
    return _calm(rows, [alert for alert in alerts if alert.acknowledged_at])


def _blind(blind: Blind) -> Verdict:
    kept, why = "Everything below is the last that was seen. Nothing was lost.", escape_invisible.first_line(blind.why)
    if blind.sight:
        return _unseen(blind.sight, blind.since, why, kept)
    said = format_html("The console cannot see: no sample since {}", components.when(blind.since))
    if not why:
        return Verdict("blind", said, "No sample", kept)
    short = why.partition(". ")[0].replace("The database", "the queues’ database", 1).removesuffix(".")
    rest = format_html("The sampler runs, and got this answer: {} It tries again each time. {}", why, kept)
    return Verdict("blind", format_html("{}: {}", said, short), "The queues cannot be read", rest)


def _unseen(seen: UnreadQueues, since: datetime, why: str, kept: str) -> Verdict:
    of = "its only queue" if seen.of == 1 else f"{seen.unread:,} of {seen.of:,} queues"
    said = format_html("The console cannot see: {} cannot be read since {}", of, components.when(since))
    rest = format_html("Of most of them the database says: {}. {}", why.rstrip("."), kept)
    return Verdict("blind", said, f"{seen.unread:,} of {seen.of:,} queues cannot be read", rest)


def _unread(number: int, warnings: Sequence[Alert], rows: Sequence[QueueRow]) -> Verdict:
    one = number == 1
    said = f"{numbers.in_words(number).capitalize()} {'queue is' if one else 'queues are'} not read"
    rest = f"{_within(rows, ())} {_can_wait(warnings)}".strip()
    return Verdict("warn", said, f"{number:,} not read", rest)


def _can_wait(warnings: Sequence[Alert]) -> str:
    return f"{numbers.pluralize(len(warnings), 'warning')} can wait." if warnings else ""


def _needed(needs: ShownNeeds, warnings: Sequence[Alert], rows: Sequence[QueueRow]) -> Verdict:
    found = needs.open
    rest = f"{_untabled(found)} {_within(rows, found)} {_can_wait(warnings)}"
    causes = [need.halted for need in found if need.halted]
    held_up = [verdicts.halted(each) for each in causes[:2]]
    counts = [_counts(needs)] if len(found) > len(held_up) else []
    sentence = format_html("{}", components.joined([*held_up, *counts], ". "))
    names_of = names.listed([need.where for need in needs.new or needs.older], 2)
    number = f"{len(found)} need{'s' if len(found) == 1 else ''} you" if needs.new else f"{len(found)} older open"
    title = f"{verdicts.plain(causes[0])}; {number}" if causes else f"{number}: {names_of}"
    return Verdict("crit", sentence, title, " ".join(rest.split()))


def _counts(needs: ShownNeeds) -> SafeString:
    """``Two queues need you``, ``3 new since 12:15, 15 older``, ``Nothing new since 12:15; 4 older are open``."""
    new, older = len(needs.new), len(needs.older)
    if not older:
        noun = "queue" if all(need.is_queue for need in needs.new) else "thing"
        said = f"{numbers.in_words(new)} {noun} needs you" if new == 1 else f"{numbers.in_words(new)} {noun}s need you"
        return format_html("{}", said[0].upper() + said[1:])
    if new:
        return format_html("{} new since {}, {} older", f"{new:,}", components.when(needs.since), f"{older:,}")
    are = "is" if older == 1 else "are"
    return format_html("Nothing new since {}; {} older {} open", components.when(needs.since), f"{older:,}", are)


def _untabled(needs: Sequence[NeedRow]) -> str:
    """A note on queues without a table, which Queues does not count as off target."""
    number = sum(need.is_queue and not need.has_table for need in needs)
    if not number:
        return ""
    have, their = ("has", "its") if number == 1 else ("have", "their")
    return f"{number:,} {have} no table; see {their} dead messages."


def _within(rows: Sequence[QueueRow], needs: Sequence[NeedRow]) -> str:
    needed = {need.key for need in needs}
    others = tally(row for row in rows if row.key not in needed)
    other = "other " if needs else ""
    noun = f"{other}queue is" if others.within == 1 else f"{other}queues are"
    said = [f"{others.within:,} {noun} within target"] if others.within else []
    return f"{'; '.join([*said, *others.rest])}." if said or others.rest else ""


def _calm(rows: Sequence[QueueRow], acknowledged: Sequence[Alert]) -> Verdict:
    counted = tally(rows)
    if rows and not counted.of:
        often = f"The sampler looks every {plain(settings.PGQUEUE['SAMPLE_SECONDS'])}."
        return Verdict("blind", "No queue was measured yet", "No sample", often)
    quiet = "acknowledged warning stays quiet", "acknowledged warnings stay quiet"
    rest = f"{numbers.pluralize(len(acknowledged), *quiet)}." if acknowledged else ""
    if counted.within == counted.of:
        said = "The only queue is within target" if counted.of == 1 else f"All {counted.of:,} queues are within target"
        return Verdict("good", said, "All within target", rest)
    sentence = f"{counted.within:,} of {counted.of:,} queues are within target"
    more = f"{', '.join(counted.rest).capitalize()}." if counted.rest else ""
    return Verdict("good", sentence, "Nothing needs you", f"{more} {rest}".strip())
