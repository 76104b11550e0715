"""Live cells of Workers and of an endpoint's page: rendered alike by page and stream."""

from collections.abc import Callable
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import components, verdicts
from pgqueue_admin.console.endpoints import health
from pgqueue_admin.console.workers import rows
from pgqueue_admin.formatting import escape_invisible, numbers
from pgqueue_admin.models import crashing_messages, endpoint_standings, expired_counts, processes
from pgqueue_admin.services import content_access


def state(row: rows.ProcessRow) -> SafeString:
    if row.is_cut_off:
        return components.state("circuit breaker open", "critical")
    if row.is_deaf:
        return components.state("deaf: receives nothing", "critical")
    said, until = components.state(row.word, row.state), row.process.drain_until
    if row.state == "lost":
        return format_html('{} <span class="sub">the figures are its last</span>', said)
    if row.state != "draining" or until is None:
        return said
    return format_html('{} <span class="sub">killed {} at the latest</span>', said, components.when(until))


def busy(row: rows.ProcessRow) -> SafeString:
    """Slots with a message in flight, and the busy share of the last minute; hot if all are busy."""
    of = row.process.slots
    if not of:
        return components.unknown()
    now = min(row.process.busy, of)
    hot = "hot" if now == of else ""
    bar = format_html('<progress class="{0}" value="{1}" max="{2}">{1} of {2}</progress> {1} of {2}', hot, now, of)
    share = row.process.busy_share
    said = "" if share is None else format_html('<span class="sub">{} of the last minute</span>', f"{share:.0%}")
    return format_html("{} {}", bar, said)


def out(row: rows.ProcessRow) -> SafeString:
    return components.rate(row.process.handled_per_second)


def handled(row: rows.ProcessRow) -> SafeString:
    """How many since it started, and how many attempts failed."""
    of = row.process
    wrong = (f"{count:,} {word}" for count, word in ((of.retried, "retried"), (of.failed, "failed")) if count)
    return format_html('{} <span class="sub">{}</span>', components.figure(of.handled), ", ".join(wrong))


def critical(row: rows.ProcessRow) -> SafeString:
    return _milliseconds(row.process.critical_p95_ms)


def _milliseconds(known: float | None) -> SafeString:
    return components.duration(None if known is None else known / 1000)


def memory(row: rows.ProcessRow) -> SafeString:
    """Resident memory, beside its limit if there is one; critical above it."""
    size, limit = row.process.memory_bytes, row.memory_limit
    said = numbers.size(size or None)
    if limit is None:
        return SafeString(said)
    tone = "crit-t" if size > limit else ""
    return format_html('<span class="{}">{}</span> <span class="sub">of {}</span>', tone, said, numbers.size(limit))


def up(row: rows.ProcessRow) -> SafeString:
    return components.duration(row.seconds_up)


def error(row: rows.ProcessRow) -> SafeString:
    """Its last error, on a line that is absent while this is empty; with the time, if known.

    It has no content that is not for all: every viewer gets the same.
    """
    said, at = content_access.NOTHING.process_error(row.process), row.process.last_error_at
    if not said:
        return SafeString()
    since = format_html(", {}", components.when(at)) if at else ""
    return format_html('Last error{}: <span class="mono">{}</span>', since, escape_invisible.plain(said))


CELLS: dict[str, Callable[[rows.ProcessRow], SafeString]] = {
    "state": state, "busy": busy, "out": out, "handled": handled, "critical": critical, "memory": memory, "up": up,
    "error": error,
}  # fmt: skip


STAFF: dict[str, Callable[[processes.EndpointProcesses], SafeString]] = {
    "state": lambda staff: components.state(*rows.staff_state(staff)),
    "have": lambda staff: format_html("{} of {}", staff.have, staff.want),
    "busy": lambda staff: format_html("{} of {}", staff.busy, staff.slots),
    "out": lambda staff: components.rate(staff.total("handled_per_second")),
    "received": lambda staff: components.figure(staff.total("received")),
    "failed": lambda staff: components.figure(staff.total("failed")),
    "retried": lambda staff: components.figure(staff.total("retried")),
    "expired": lambda staff: components.figure(staff.total("expired")),
    "critical_p50": lambda staff: _milliseconds(staff.worst("critical_p50_ms")),
    "critical": lambda staff: _milliseconds(staff.worst("critical_p95_ms")),
    "processing": lambda staff: _milliseconds(staff.worst("processing_p95_ms")),
}


def live(_: str) -> dict[str, str]:
    """All cells at once: processes are few, and each page uses those that it has places for."""
    return _live(processes.by_endpoint())


def of_list(_: str) -> dict[str, str]:
    """Topic ``endpoints``: also the verdict below the list's name."""
    staffed = processes.by_endpoint()
    return {**_live(staffed), "endpoints.verdict": verdicts.line(health.verdict(endpoint_standings.of(staffed)))}


def of_endpoint(number: str) -> dict[str, str]:
    """Topic ``endpoint:12``: the same, with the endpoint's own title."""
    staffed = processes.by_endpoint()
    own = next((each for each in staffed if str(each.endpoint.pk) == number), None)
    if own is None:
        return {}
    said, dropped = rows.title(own), components.figure(expired_counts.of(own.endpoint).number)
    return {**_live(staffed), f"staff.{number}.dropped": dropped, "@title": escape_invisible.plain(said), "@say": said}


def _live(staffed: list[processes.EndpointProcesses]) -> dict[str, str]:
    found = rows.known(staffed)
    told: dict[str, Any] = {
        f"process.{row.process.pk}.{name}": cell(row) for row in found for name, cell in CELLS.items()
    }
    told |= {f"staff.{each.endpoint.pk}.{name}": cell(each) for each in staffed for name, cell in STAFF.items()}
    told["@processes"] = ",".join(str(row.process.pk) for row in found if row.process.role != "supervisor")
    standing = endpoint_standings.of(staffed)
    verdict = rows.verdict(standing, found, crashing_messages.suspects())
    told |= components.live_verdict("workers.verdict", verdict.tone, verdict.sentence)
    told["workers.verdict.rest"] = verdict.rest
    return {**told, "@title": escape_invisible.plain(verdict.title), "@say": verdict.spoken}
