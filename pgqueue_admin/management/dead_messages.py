"""Reads the arguments of `manage.py dead`, and prints what it found and did."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings

from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting import confirmations, edit_words
from pgqueue_admin.formatting import trials as words
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.models import Operation, Trial, TrialItem, queue_lookup
from pgqueue_admin.services import content_access, trials
from pgqueue_admin.services.operations import edits
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.queries import RetryTargets
from pgqueue_admin.services.operations.targets import parsed

STATES = ("dead", "retried", "succeeded", "dead_again", "discarded", "all")
MOST = 1_000_000  # of one list
_LISTED = (
    *("id", "state", "result", "kind", "queue", "message_id", "message_type", "exception_type", "exception_message"),
    *("endpoint", "died_at", "sent_at", "resolved_by", "resolved_at", "operation", "why_no_retry"),
)
_ITEM = ("archive_id", "queue", "outcome", "why", "previous_actor", "previous_at", "target", "state")


def add_filters(parser: ArgumentParser) -> None:
    parser.add_argument("--search", default="", help="As in the archive's box, alone: -type:Ping age:>1h (search.md).")
    parser.add_argument("--queue", default="", help='The queue where it died: Billing, or \'"public"."Billing"\'.')
    parser.add_argument("--type", default="", help="Message type: full name, or its last part.")
    parser.add_argument("--exception", default="", help="Exception type: full name, or its last part.")
    parser.add_argument("--endpoint", default="", help="Who handled it.")
    parser.add_argument("--message-id", default="", help="Its own id, as the sender gave it.")
    parser.add_argument("--kind", default="", choices=("transport", "control", "lease"), help="Of the queue.")
    parser.add_argument(
        "--word", action="append", default=[], help="In the exception's message; repeatable, all must match."
    )
    parser.add_argument("--header", action="append", default=[], help="In the headers' text; likewise.")
    parser.add_argument("--body", action="append", default=[], help="In the body, as UTF-8, capitals count; likewise.")


def filter_of(options: dict[str, Any], state: str) -> ArchiveFilter:
    """``state``: used if a search names none. Raises OperationRefused if a search cannot be read."""
    if options["search"]:
        found = search.read(options["search"], content_access.ALL)
        if found.error:
            raise OperationRefused(f"{found.error} Nothing was done.")
        return replace(found.filter, state=found.filter.state or state)
    names = ("type", "exception", "endpoint", "message_id", "kind")
    same: dict[str, Any] = {name: options[name] or "" for name in names}
    queue = queue_lookup.canonical(options["queue"]) if options["queue"] else ""
    same |= {"words": tuple(options["word"]), "headers": tuple(options["header"]), "bodies": tuple(options["body"])}
    return ArchiveFilter(state=state, queue=queue, **same)


def narrows(options: dict[str, Any]) -> bool:
    """Whether options exclude any message. A search for a state alone does not: an act is for one state in any case.
    Raises OperationRefused.
    """
    if _has_filters(options):
        return True
    return bool(options["search"]) and replace(filter_of(options, ""), state="") != ArchiveFilter(state="")


def _has_filters(options: dict[str, Any]) -> bool:
    names = ("queue", "type", "exception", "endpoint", "message_id", "kind", "word", "header", "body")
    return any(options[name] for name in names)


def fault(options: dict[str, Any]) -> str:
    """Why these arguments are refused; empty: they are valid."""
    if said := act_command.no_text(options.values()):
        return said
    if not 1 <= options.get("limit", 1) <= MOST:
        return f"--limit takes a number from 1 to {MOST:,}."
    if options.get("search") and _has_filters(options):
        return "Give --search or other filters, not both."
    return ""


def print_messages(out: Any, messages: list[ArchivedMessage], more: bool, as_json: bool) -> None:
    if as_json:
        found = [{name: getattr(message, name) for name in _LISTED} for message in messages]
        return dump(out, {"messages": found, "more": more})
    for message in messages:
        cause = f"{message.exception_type}: {_one_line(message.exception_message)}" if message.exception_type else ""
        words = (
            message.state,
            f"{message.died_at:%Y-%m-%d %H:%M:%S}",
            message.queue or "-",
            message.message_type or "-",
        )
        out.write(act_command.line(f"{message.id:>8}", *words, cause or message.why_no_retry or ""))
    out.write(pluralize(len(messages), "message") + (", and more (--limit)." if more else "."))


def print_question(out: Any, operation: Operation, targets: RetryTargets | None, named: Collection[str]) -> None:
    """Print what would happen, by queue, in the words of the pages. ``named``: targets of ``--into``."""
    out.write(confirmations.question(operation.kind, operation.count, settings.PGQUEUE["ENVIRONMENT"]))
    for queue, count in operation.queues.items():
        out.write(f"{count:>8}  {queue or 'lease queue'}")
    if targets:
        for line in _about(targets, parsed(named)):
            out.write(line)
    out.write(confirmations.effect(operation.kind, settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]))


def _about(targets: RetryTargets, named: Collection[Address]) -> Iterator[str]:
    for each in targets.all:
        if why := each.target.refusal(named):
            hint = "" if each.target.blocking_reason else f" With --into '{each.target.name}' it does."
            yield f"{each.messages:>8}  stay dead. {why}{hint}"
    for ruled in targets.ruled:
        why = f" They are skipped: {ruled.blocking_reason}" if ruled.blocking_reason else ""
        yield f"{ruled.messages:>8}  go to {ruled.rule.target} by rule {ruled.rule.number}.{why}"
    for each in targets.running:
        runs = ", ".join(each.target.runs)
        yield f"{each.target.name} runs code of others with the rights of this console: {runs}"
    if targets.unfit:
        yield f"{targets.unfit:>8}  stay dead: they can be put into no queue."


def print_result(out: Any, operation: Operation, notable: list[Any], as_json: bool) -> None:
    named = ("kind", "state", "count", "done", "skipped", "failed", "last_error")
    figures = {name: getattr(operation, name) for name in named}
    if as_json:
        items = [{name: getattr(item, name) for name in _ITEM} for item in notable]
        return dump(out, {"operation": operation.pk, **figures, "queues": operation.queues, "not_done": items})
    for item in notable:
        out.write(f"{item.archive_id:>8}  {item.outcome or 'not done'}  {item.why or ''}")
    if operation.last_error:
        out.write(operation.last_error)
    out.write(
        f"Operation {operation.pk} {operation.state}: {operation.done} of {operation.count} done, "
        f"{operation.skipped} skipped, {operation.failed} failed."
    )


def dump(out: Any, found: dict[str, Any]) -> None:
    out.write(json.dumps(found, default=_plain, ensure_ascii=False, indent=1))


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())[:120]


# `manage.py dead try`: waits for a trial, which a process of the supervisor runs, and prints its results.
LOOK_EVERY = 0.5  # seconds
_TRIED = ("archive_id", "endpoint", "message_type", "outcome", "raised", "why", "same_cause", "sends")


def wait_for_trial(trial: Trial) -> list[TrialItem]:
    """Wait until each is tried, or it is too late for the rest."""
    items = trials.results(trial)
    while any(each.outcome == TrialItem.Outcome.WAITING for each in items):
        time.sleep(LOOK_EVERY)
        items = trials.results(trial)
    return items


def print_trial(out: Any, trial: Trial, items: list[TrialItem], as_json: bool) -> None:
    if as_json:
        found = [{name: getattr(each, name) for name in _TRIED} for each in items]
        return dump(out, {"trial": trial.pk, "messages": found, "not_covered": words.NOT_COVERED})
    for each in items:
        why = " ".join(" ".join((each.raised, each.why)).split())[:160]
        out.write(act_command.line(f"{each.archive_id:>8}", words.OUTCOMES[each.outcome][0], why).rstrip())
    out.write(words.sentence(items))
    out.write(words.NOT_COVERED)


# `manage.py dead retry`: changes one header or field of each message, and prints how many change.
def add_edit_arguments(parser: ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--set-header", nargs=2, metavar=("NAME", "VALUE"), help="In each: a header. New message ids.")
    one.add_argument("--set-field", nargs=2, metavar=("PATH", "VALUE"), help="In each: a field of the JSON body.")
    one.add_argument("--drop-header", metavar="NAME", help="In each: remove a header.")
    one.add_argument("--drop-field", metavar="PATH", help="In each: remove a field.")
    parser.add_argument("--where-value", metavar="VALUE", help="With --set-…: only where it has this value now.")
    parser.add_argument("--or-add", action="store_true", help="With --set-…: also where it is missing.")
    parser.add_argument("--as-json", action="store_true", help="With --set-field: values are JSON: 12, true, null.")


def edit_of(options: dict[str, Any]) -> MessageEdit | None:
    """Return the edit. Raises OperationRefused if it is invalid."""
    found = _named(options)
    more = options["where_value"] is not None, options["or_add"], options["as_json"]
    if found is None:
        if any(more):
            raise OperationRefused("Nothing was retried: say --set-header or --set-field, too.")
        return None
    part, name, value = found
    if (value is None and any(more)) or (more[0] and more[1]):
        raise OperationRefused("Nothing was retried: --where-value, --or-add and --drop-… exclude each other.")
    way = "remove" if value is None else "replace" if more[0] else "add" if more[1] else "set"
    edit = MessageEdit(part, name, way, value or "", options["where_value"] or "", options["as_json"])
    if fault := edit.fault():
        raise OperationRefused(f"Nothing was retried. {fault}")
    return edit


def _named(options: dict[str, Any]) -> tuple[str, str, str | None] | None:
    for part in ("header", "field"):
        if given := options[f"set_{part}"]:
            return part, given[0], given[1]
        if name := options[f"drop_{part}"]:
            return part, name, None
    return None


def print_edit(out: Any, connection: Connection, operation: Operation) -> None:
    """Preview the edit with the function that applies it; nothing is changed yet."""
    kept = edits.of(operation)
    if kept is None:
        return
    edit = kept.edit
    out.write(f"In each it {edit_words.said(edit.part, edit.name, edit.way, edit.old, edit.new)}.")
    found = edits.look(connection, operation, edit, content_access.ALL)
    for name, sentence in edit_words.COUNTED.items():
        if found.counts[name] or name == "changed":
            out.write(f"{found.counts[name]:>8}  {sentence.format(part=edit.part)}")
    if rest := operation.count - found.looked_at:
        out.write(f"{rest:>8}  were not looked at: each is judged as it is sent")
