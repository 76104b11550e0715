"""What people and machines did, in words: the audit, marks of deploys, and processes that ended badly."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from pgqueue_admin.console import navigation
from pgqueue_admin.console.operations import labels
from pgqueue_admin.console.workers import rows
from pgqueue_admin.formatting import audit_verbs
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import AuditEntry, PostedMark, Process, settings_words

ICONS = {
    "retry": "back", "discard": "quiet", "restore": "back", "set": "gear", "undo": "back", "start": "play",
    "stop": "quiet", "scale": "gear", "pause": "pause", "resume": "play", "acknowledge": "ok",
}  # fmt: skip
_NAMED = {
    ("cancel", "operation"): "operation ",
    ("acknowledge", "alert"): "warning ",
    ("acknowledge", "failure"): "failure ",
    ("set", "failure"): "what is known of failure ",
    ("withdraw", "failure"): "the acknowledgement of failure ",
    ("withdraw", "alert"): "the acknowledgement of warning ",
}

_LOG_HEAD = re.compile(r"(?<=last line: )\d{4}-\d\d-\d\d [\d:,.]+ [A-Z]+ \S+\[\d+\] ")  # of worker_settings' line
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class RecentChange:
    at: datetime
    who: str
    did: str
    icon: str
    path: str = ""
    crash_of: str = ""  # whose process ended badly

    @property
    def short(self) -> str:
        """At most 18 characters, for the ribbon."""
        said = f"{self.who} {self.did}"
        return said if len(said) <= 18 else f"{said[:17]}…"


def latest(most: int = 40) -> list[RecentChange]:
    """Newest first: so many of what people did, of what programs marked, and of processes that ended.

    Who signs in changes nothing here.
    """
    entries = [of_entry(entry) for entry in AuditEntry.objects.exclude(noun="person")[:most]]
    marks = [of_mark(mark) for mark in PostedMark.objects.all()[:most]]
    crashed = [of_crash(process) for process in _crashes().order_by("-ended_at")[:most]]
    return sorted([*entries, *marks, *crashed], key=lambda change: change.at, reverse=True)


def of_entry(entry: AuditEntry) -> RecentChange:
    path = f"{navigation.path_of('operations')}{entry.operation_id}/" if entry.operation_id else ""
    return RecentChange(entry.at, entry.who, _did(entry), ICONS.get(entry.verb, "info"), path)


def of_mark(mark: PostedMark) -> RecentChange:
    return RecentChange(mark.at, mark.who, mark.text, "deploy", mark.link)


def _did(entry: AuditEntry) -> str:
    if entry.noun in {"endpoint", "queue"} and entry.after and entry.verb in {"set", "undo"}:
        return f"set {entry.subject}: {settings_words.change(entry.before, entry.after)}"
    return f"{audit_verbs.past(entry.verb)} {_what(entry)}"


def _what(entry: AuditEntry) -> str:
    number = pluralize(entry.count, audit_verbs.counts(entry.verb))
    about = f", operation {entry.operation_id}" if entry.operation_id else ""
    if entry.noun == "message":
        return f"{number} of {labels.table_of(entry.subject)}{about}"
    if entry.noun == "history" and audit_verbs.counts(entry.verb):
        return f"{number} of {entry.subject}"
    return f"{_NAMED.get((entry.verb, entry.noun), '')}{entry.subject}"


def of_crash(process: Process) -> RecentChange:
    name = process.endpoint or process.role
    ended = process.ended_at or process.heartbeat_at
    did = f"{name}, pid {process.pid}, {rows.ended(_why_ended(process))}"
    return RecentChange(ended, process.host, did, "dead", navigation.path_of("workers"), name)


def folded(found: Iterable[RecentChange]) -> list[RecentChange]:
    """In the order they are given. Of who crashes again and again only the last: people's acts would not be found."""
    last: dict[str, RecentChange] = {}
    count: Counter[str] = Counter()
    said = list(found)
    for change in said:
        count[change.crash_of] += 1
        last[change.crash_of] = max(change, last.get(change.crash_of, change), key=lambda each: each.at)
    return [
        _with_those_before(change, count[change.crash_of] - 1) if change.crash_of else change
        for change in said
        if not change.crash_of or change is last[change.crash_of]
    ]


def _with_those_before(change: RecentChange, before: int) -> RecentChange:
    return replace(change, did=f"{change.did}, and {before:,} more before it") if before else change


def _why_ended(process: Process) -> str:
    """Where its supervisor went before it, a process is gone without anybody to whom it said its exit code."""
    if why := process.last_error.strip():
        return _cut(_LOG_HEAD.sub("", why.split("\n")[0]))
    return "exit code unknown" if process.exit_code is None else f"exit code {process.exit_code}"


def _cut(said: str) -> str:
    """At a word's end; the process's log has all of it."""
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST].rpartition(' ')[0] or said[:_LONGEST]} …"


def _crashes():  # type: ignore[no-untyped-def]
    bad = (Process.State.CRASHED, Process.State.BACK_OFF, Process.State.LOST)
    return Process.objects.filter(state__in=bad).exclude(ended_at=None)
