"""Recent changes, in words: audited acts, marks of deployments, and processes that crashed."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from pgqueue_admin.console import navigation
from pgqueue_admin.console.archive import shown_search
from pgqueue_admin.console.operations import labels
from pgqueue_admin.console.workers import rows
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting import audit_verbs
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import AuditEntry, Operation, PostedMark, Process, settings_words
from pgqueue_admin.services import content_access

ICONS = {
    "retry": "back", "call back": "back", "discard": "quiet", "purge": "quiet", "restore": "back", "set": "gear",
    "undo": "back", "start": "play", "stop": "quiet", "scale": "gear", "pause": "pause", "resume": "play",
    "acknowledge": "ok",
}  # fmt: skip
_NAMED = {
    **{(verb, "operation"): "operation " for verb in ("cancel", "pause", "resume", "stop")},
    ("set", "operation"): "the rate of operation ",
    **{(verb, "retry rule"): "retry rule " for verb in ("create", "remove")},
    **{(verb, "lease rule"): "lease rule of " for verb in ("create", "remove")},
    ("create", "view"): "the shared view ",
    ("set", "view"): "the shared view ",
    ("remove", "view"): "the shared view ",
    ("acknowledge", "alert"): "warning ",
    ("acknowledge", "failure"): "failure ",
    ("set", "failure"): "what is known of failure ",
    ("withdraw", "failure"): "the acknowledgement of failure ",
    ("withdraw", "alert"): "the acknowledgement of warning ",
    **{(verb, "masking"): "the masking rule " for verb in ("create", "set", "remove")},
    **{(verb, "scope"): "a queue scope of " for verb in ("create", "set", "remove")},
    **{(verb, "masking"): "masked parts from " for verb in ("reveal", "hide")},
}

_LOG_HEAD = re.compile(r"(?<=last line: )\d{4}-\d\d-\d\d [\d:,.]+ [A-Z]+ \S+\[\d+\] ")  # as base_settings formats it
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class RecentChange:
    at: datetime
    who: str
    did: str
    icon: str
    path: str = ""
    crash_of: str = ""  # label of the process that crashed

    @property
    def short(self) -> str:
        """At most 18 characters, for the ribbon."""
        said = f"{self.who} {self.did}"
        return said if len(said) <= 18 else f"{said[:17]}…"


def latest(most: int = 40) -> list[RecentChange]:
    """Newest first: at most ``most`` acts, marks and crashed processes each, without content that is not for all.

    Sign-ins are left out: they change nothing here. Marks and processes are of the whole installation: a scoped user
    sees only acts on their queues.
    """
    entries = [of_entry(shown_search.entry(entry, content_access.NOTHING)) for entry in acts()[:most]]
    if visible_queues.current() is not None:
        return entries
    marks = [of_mark(mark) for mark in PostedMark.objects.all()[:most]]
    crashed = [of_crash(process) for process in _crashes().order_by("-ended_at")[:most]]
    return sorted([*entries, *marks, *crashed], key=lambda change: change.at, reverse=True)


def acts() -> QuerySet[AuditEntry]:
    """Audited acts, newest first; of operations only those that this person may see."""
    found = AuditEntry.objects.exclude(noun="person")
    if visible_queues.current() is None:
        return found
    return found.filter(Q(operation_id=None) | Exists(Operation.objects.filter(pk=OuterRef("operation_id"))))


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
    if entry.noun == "archive":
        return f"{pluralize(entry.count, 'message')} of the archive: {entry.subject or 'everything'}"
    return f"{_NAMED.get((entry.verb, entry.noun), '')}{entry.subject}"


def of_crash(process: Process) -> RecentChange:
    name = process.label
    ended = process.ended_at or process.heartbeat_at
    did = f"{name}, pid {process.pid}, {rows.ended(_why_ended(process))}"
    return RecentChange(ended, process.host, did, "dead", navigation.path_of("workers"), name)


def folded(found: Iterable[RecentChange]) -> list[RecentChange]:
    """Keep the order. Of repeated crashes only the last is kept: acts of people would be lost among them."""
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
    """Its last error, else its exit code: unknown if its supervisor ended before it."""
    if why := content_access.NOTHING.process_error(process).strip():
        return _cut(_LOG_HEAD.sub("", why.split("\n")[0]))
    return "exit code unknown" if process.exit_code is None else f"exit code {process.exit_code}"


def _cut(said: str) -> str:
    """Cut at a word's end; the process's log has the rest."""
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST].rpartition(' ')[0] or said[:_LONGEST]} …"


def _crashes():  # type: ignore[no-untyped-def]
    bad = (Process.State.CRASHED, Process.State.BACK_OFF, Process.State.LOST)
    return Process.objects.filter(state__in=bad).exclude(ended_at=None)
