"""How `manage.py dead` reads its arguments and says what it found and did."""

import json
import re
from argparse import ArgumentParser
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from django.conf import settings

from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import confirmations
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Operation, queue_lookup
from pgqueue_admin.services.operations.queries import Targets
from pgqueue_admin.services.operations.targets import parsed

STATES = ("dead", "retried", "succeeded", "dead_again", "discarded", "all")
MOST = 1_000_000  # of one list
_LISTED = (
    *("id", "state", "result", "kind", "queue", "message_id", "message_type", "exception_type", "exception_message"),
    *("endpoint", "died_at", "sent_at", "became_by", "became_at", "operation", "why_no_retry"),
)
_ITEM = ("archive_id", "queue", "outcome", "why", "who_before", "when_before", "target", "state")


def add_filters(parser: ArgumentParser) -> None:
    parser.add_argument("--queue", default="", help='Where it died: Billing, or \'"public"."Billing"\'.')
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
    names = ("type", "exception", "endpoint", "message_id", "kind")
    same: dict[str, Any] = {name: options[name] or "" for name in names}
    queue = queue_lookup.canonical(options["queue"]) if options["queue"] else ""
    same |= {"words": tuple(options["word"]), "headers": tuple(options["header"]), "bodies": tuple(options["body"])}
    return ArchiveFilter(state=state, queue=queue, **same)


def narrows(options: dict[str, Any]) -> bool:
    names = ("queue", "type", "exception", "endpoint", "message_id", "kind", "word", "header", "body")
    return any(options[name] for name in names)


def fault(options: dict[str, Any]) -> str:
    """Why these arguments cannot be taken; empty: they can. What a shell gives in other bytes comes with surrogates."""
    texts = [text for given in options.values() for text in (given if isinstance(given, list) else [given])]
    for text in texts:
        if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
            return f"{text!a} is no text: its bytes are not UTF-8."
    if not 1 <= options.get("limit", 1) <= MOST:
        return f"--limit takes a number from 1 to {MOST:,}."
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
        out.write("  ".join((f"{message.id:>8}", *words, cause or message.why_no_retry or "")))
    out.write(pluralize(len(messages), "message") + (", and more (--limit)." if more else "."))


def print_question(out: Any, operation: Operation, targets: Targets | None, named: Collection[str]) -> None:
    """What would happen, by queue, in the words of the pages: nothing has happened yet. ``named``: with ``--into``."""
    out.write(confirmations.question(operation.kind, operation.count, settings.PGQUEUE["ENVIRONMENT"]))
    for queue, count in operation.queues.items():
        out.write(f"{count:>8}  {queue or 'lease queue'}")
    if targets:
        for line in _about(targets, parsed(named)):
            out.write(line)
    out.write(confirmations.effect(operation.kind, settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]))


def _about(targets: Targets, named: Collection[Address]) -> Iterator[str]:
    for each in targets.all:
        if why := each.target.refusal(named):
            hint = "" if each.target.why_not else f" With --into '{each.target.name}' it does."
            yield f"{each.messages:>8}  stay dead. {why}{hint}"
        if each.target.runs and not each.target.why_not:
            runs = ", ".join(each.target.runs)
            yield f"{each.target.name} runs code of others with the rights of this console: {runs}"
    if targets.unfit:
        yield f"{targets.unfit:>8}  stay dead: they can be put into no queue."


def print_result(out: Any, operation: Operation, notable: list[Any], as_json: bool) -> None:
    figures = {name: getattr(operation, name) for name in ("kind", "state", "count", "done", "skipped", "failed")}
    if as_json:
        items = [{name: getattr(item, name) for name in _ITEM} for item in notable]
        return dump(out, {"operation": operation.pk, **figures, "queues": operation.queues, "not_done": items})
    for item in notable:
        out.write(f"{item.archive_id:>8}  {item.outcome or 'not done'}  {item.why or ''}")
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
