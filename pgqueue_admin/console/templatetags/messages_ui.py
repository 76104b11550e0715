"""Template tags for message content: bodies, hostile text and header names. Text nodes only, ever."""

from collections.abc import Container
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.archive.store import CappedCount
from pgqueue_admin.console import components, responses
from pgqueue_admin.console.archive import cells as archive_cells
from pgqueue_admin.console.delayed import rows as delayed
from pgqueue_admin.console.failures import cells as failure_cells
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.console.messages import payload_cells
from pgqueue_admin.console.messages.detail.summary import STATE_WORDS, done_by
from pgqueue_admin.console.operations import labels
from pgqueue_admin.console.workers import cells
from pgqueue_admin.console.workers.rows import ProcessRow, ended
from pgqueue_admin.formatting import audit_verbs, clock_skew, durations, escape_invisible, history, numbers, times
from pgqueue_admin.models import LatestSample, database_clock, settings_words
from pgqueue_admin.models.processes import EndpointProcesses
from pgqueue_admin.services import content_access
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.permissions import refusal_for

OUTCOMES = {  # word, and whose shape and colour
    "succeeded": ("succeeded", "succeeded"), "picked": ("picked up", "picked"), "sent": ("sent, waiting", "waiting"),
    "same": ("dead, same cause", "dead"), "other": ("dead, another", "dead"), "dead": ("dead again", "dead"),
    "unknown": ("not known", "unknown"), "skipped": ("skipped", "skipped"), "failed": ("failed", "failed"),
    "open": ("not sent", "quiet"),
}  # fmt: skip
register = template.Library()


@register.filter
def tone(tags: str) -> str:
    """The tone of a response: the first of its stored tags."""
    return tags.partition(" ")[0]


@register.filter
def ways(tags: str) -> list[responses.Way]:
    """The links of a response, on and back."""
    return responses.ways(tags)


@register.filter
def marked(text: str | None) -> SafeString:
    return components.marked(str(text or ""))


@register.filter
def statement(text: str) -> str:
    """The statement that a note asks a person to run; empty if none."""
    return history.statement(text)


@register.simple_tag
def type_name(text: str) -> SafeString:
    """A type or header name: marked, and breaking where a reader would break it."""
    return components.name(escape_invisible.plain(text or ""))


@register.inclusion_tag("pgqueue_admin/masking/note.html", takes_context=True)
def masking_note(context: template.Context) -> dict[str, Any]:
    """The note that parts of messages are hidden, or until when they are shown, with the act that changes it."""
    request = context["request"]
    access = content_access.of(request.user)
    about = {"masks": bool(access.rules), "until": access.revealed_until, "csrf_token": context.get("csrf_token")}
    return {"request": request, "refusal": refusal_for(request.user, "reveal"), "minutes": reveals.MINUTES, **about}


@register.simple_tag
def milliseconds(count: float | None) -> SafeString:
    return components.duration(None if count is None else count / 1000)


@register.simple_tag
def said(pattern: str, *values: object) -> str:
    """A sentence made of a pattern and values: ``{% said "Stop {} in {}?" name environment as title %}``."""
    return pattern.format(*values)


@register.inclusion_tag("pgqueue_admin/parts/confirm.html", takes_context=True)
def confirm(
    context: template.Context, key: str, url: str, *, title: str, text: str, button: str, keep: str, **about: Any
) -> dict[str, Any]:
    """A question before an act, opened by a button with ``popovertarget``; further names become hidden fields."""
    ask_reason, kind = about.pop("ask_reason", False), about.pop("kind", "bad")
    asked = {"key": key, "url": url, "title": title, "text": text, "button": button, "keep": keep}
    given = {"request": context.get("request"), "csrf_token": context.get("csrf_token"), "fields": about}
    return {**asked, **given, "ask_reason": ask_reason, "kind": kind}


register.simple_tag(components.pieces, name="pieces")
register.simple_tag(components.message_name, name="message_name")
register.simple_tag(components.message_size, name="message_size")
register.filter("truncated", components.truncated)
register.filter("done_by", done_by)
register.filter("in_zone", labels.in_zone)
register.filter("ended", ended)
register.filter("past", audit_verbs.past)
register.filter("share", numbers.share)
register.simple_tag(clock_skew.zone_fact, name="skew_zone")
register.simple_tag(clock_skew.zone_meaning, name="skew_meaning")
register.simple_tag(clock_skew.clock, name="skew_clock")
register.simple_tag(clock_skew.short, name="skew_short")
register.simple_tag(settings_words.label, name="setting_label")
register.simple_tag(settings_words.value, name="setting_value")
register.simple_tag(settings_words.did, name="setting_did")


@register.simple_tag
def milliseconds_setting(count: int) -> str:
    return durations.plain(count / 1000)


@register.filter
def grouped(number: int | None) -> str:
    """A seq or an id, always full: ``88,141,900``."""
    return "–" if number is None else f"{number:,}"


@register.simple_tag
def day(instant: datetime | None) -> str:
    """The date if it is not today, for a timeline that shows only times."""
    if (
        instant is None
        or times.beyond(instant)
        or timezone.localdate(instant) == timezone.localdate(database_clock.now())
    ):
        return ""
    return times.short(instant, database_clock.now(), timezone.get_current_timezone()).rpartition(" ")[0] or (
        timezone.localdate(instant).isoformat()
    )


@register.simple_tag
def capped(count: CappedCount) -> str:
    """``38``, or ``10,000+`` where the count stopped."""
    return numbers.format_figure(count[0], "capped" if count.more else "counted")


@register.simple_tag
def state_word(state: str) -> str:
    return STATE_WORDS.get(state, state)


@register.simple_tag
def state_of_done(kind: str, row: Any) -> SafeString:
    """The result of an act, or the state since: retried, succeeded, dead again."""
    now = row.state if kind == "retry" and row.state in {"succeeded", "dead_again"} else audit_verbs.past(kind)
    return components.state(STATE_WORDS.get(now, now), now)


@register.simple_tag
def outcome_of(row: Any) -> SafeString:
    """The outcome of a message of a staged retry, by its class."""
    word, which = OUTCOMES[row.what]
    return components.state(word, which)


@register.simple_tag
def operation_name(number: int, started_here: Container[int]) -> SafeString:
    """A link to the operation, or plain text if it is of another console on the same queues."""
    if number not in started_here:
        return format_html("operation {} of another console", number)
    return format_html('<a href="{}">operation {}</a>', reverse("operation", args=[number]), number)


@register.simple_tag
def process_cell(row: ProcessRow, name: str) -> SafeString:
    """A cell of a process, exactly as the stream sends it."""
    return cells.CELLS[name](row)


@register.simple_tag
def staff_cell(staff: EndpointProcesses, name: str) -> SafeString:
    return cells.STAFF[name](staff)


@register.simple_tag
def overdue(known: LatestSample | None) -> SafeString:
    """How many messages of a delayed table are overdue."""
    return delayed.late(known)


@register.simple_tag
def delayed_cell(row: delayed.DelayedRow, name: str) -> SafeString:
    return delayed.CELLS[name](row)


@register.simple_tag
def failure_row(row: FailureRow, refusal: Any, live: str) -> SafeString:
    """A row of the list of failures. With a ``refusal`` it has no checkbox; ``live``: the topic of the page."""
    return failure_cells.row(row, is_picked=not refusal, is_followed=bool(live))


@register.simple_tag
def failure_cell(row: FailureRow, name: str) -> SafeString:
    """A cell of a failure, exactly as the stream sends it."""
    return failure_cells.LIVE[name](row)


register.simple_tag(failure_cells.owner, name="failure_owner")
register.simple_tag(failure_cells.acknowledged_until, name="acknowledged_until")
register.simple_tag(archive_cells.rows, name="archive_rows")
register.simple_tag(payload_cells.drawn, name="payload_cells")
