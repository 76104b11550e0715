"""Cells that change by themselves on Workers and on an endpoint's page: drawn alike by page and stream."""

from collections.abc import Callable
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import parts, processes
from pgqueue_admin.records import processes as records
from pgqueue_admin.wording import figures, visible


def state(row: processes.Row) -> SafeString:
    return parts.state(row.word, row.state)


def busy(row: processes.Row) -> SafeString:
    """How many of its slots have a message in hand; a full one is drawn hot."""
    of = row.process.slots
    if not of:
        return parts.unknown()
    now = min(row.process.busy, of)
    hot = "hot" if now == of else ""
    return format_html('<progress class="{0}" value="{1}" max="{2}">{1} of {2}</progress> {1} of {2}', hot, now, of)


def out(row: processes.Row) -> SafeString:
    return parts.rate(row.process.handled_per_second)


def handled(row: processes.Row) -> SafeString:
    """How many since it started, and how many of their attempts went wrong."""
    of = row.process
    wrong = (f"{count:,} {word}" for count, word in ((of.retried, "retried"), (of.failed, "failed")) if count)
    return format_html('{} <span class="sub">{}</span>', parts.figure(of.handled), ", ".join(wrong))


def critical(row: processes.Row) -> SafeString:
    known = row.process.critical_p95_ms
    return parts.duration(None if known is None else known / 1000)


def memory(row: processes.Row) -> SafeString:
    return SafeString(figures.size(row.process.memory_bytes or None))


def up(row: processes.Row) -> SafeString:
    return parts.duration(row.seconds_up)


def error(row: processes.Row) -> SafeString:
    said = row.process.last_error
    if not said:
        return SafeString('<span class="faint">none</span>')
    return format_html('<span class="mono small wrap-any">{}</span>', visible.plain(said))


CELLS: dict[str, Callable[[processes.Row], SafeString]] = {
    "state": state, "busy": busy, "out": out, "handled": handled, "critical": critical, "memory": memory, "up": up,
    "error": error,
}  # fmt: skip


def staff_state(staff: records.OfEndpoint) -> SafeString:
    return parts.state(*processes.staff_state(staff))


def staff_have(staff: records.OfEndpoint) -> SafeString:
    return format_html("{} of {}", staff.have, staff.want)


def live(_: str) -> dict[str, str]:
    """Everything at once: few processes, and each page keeps the cells it has places for."""
    found = [processes.Row(process) for process in records.current()]
    staffed = records.by_endpoint()
    told: dict[str, Any] = {
        f"process.{row.process.pk}.{name}": cell(row) for row in found for name, cell in CELLS.items()
    }
    for staff in staffed:
        told[f"staff.{staff.endpoint.pk}.state"] = staff_state(staff)
        told[f"staff.{staff.endpoint.pk}.have"] = staff_have(staff)
    _, sentence = processes.verdict(staffed, any(row.process.role == "supervisor" for row in found))
    return {**told, "workers.verdict": format_html("{}", sentence), "@say": sentence}
