"""`manage.py lease`: lists, publishes, releases and ends lease messages, as the pages do."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandError

from pgqueue_admin.console.leases import query
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.formatting import lease_acts
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.management.dead_messages import dump
from pgqueue_admin.models.queue_database import is_watched, queue_database
from pgqueue_admin.monitor import discovery, lease_messages
from pgqueue_admin.monitor.lease_messages import LeaseMessage
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.monitor.waiting_search import Found
from pgqueue_admin.services import content_access, leases
from pgqueue_admin.services.leases import MOST, ActName, SeenLease
from pgqueue_admin.services.operations.confirmation import REASON_ABOVE

ORDERS = ("number", "newest", "locked", "waiting")


def add_verbs(verbs: Any) -> None:
    listing = act_command.listing(verbs.add_parser("list", help="Its messages, with state and holder."))
    listing.add_argument("--order", choices=ORDERS, default="number", help="Which come first. Default: number.")
    listing.add_argument("--limit", type=int, default=50, help="How many, 1 to 500. Default: 50.")
    listing.add_argument("--search", default="", help="Those that fit, as in its page's box: is:locked body.no:4711.")
    publish = act_command.named(verbs.add_parser("publish", help="Inserts one message, JSON as written."))
    publish.add_argument("file", metavar="FILE", help="Its JSON, UTF-8; -: standard input.")
    release = act_command.asking(verbs.add_parser("release", help="Takes locks off: a worker may claim them at once."))
    end = act_command.asking(verbs.add_parser("end", help="Archives messages as failed, from where they are retried."))
    end.add_argument("--rejected", action="store_true", help="As rejected: they can never be handled.")
    for parser in (release, end):
        parser.add_argument("numbers", nargs="+", type=int, metavar="NUMBER", help=f"As list shows it; at most {MOST}.")


def listed(out: Any, options: dict[str, Any]) -> None:
    if not 1 <= options["limit"] <= 500:
        _wrong("--limit is 1 to 500.")
    order, search = options["order"], options["search"].strip()
    if search and order not in ("number", "newest"):
        _wrong("With --search the order is number or newest.")
    with queue_database().read_session(searching=bool(search)) as connection:
        table, look = _table(connection), None
        if search:
            look = _looked(connection, table, search, options["limit"], is_newest_first=order == "newest")
        found = look.messages if look else lease_messages.page(connection, table, order, options["limit"])
    told = [_told(each) for each in found]
    looked = {"looked_at": look.looked_at, "more": look.onward is not None} if look else {}
    if options["json"]:
        return dump(out, {"messages": told, **looked})
    for each in told:
        out.write(act_command.line(*(value for value in each.values() if value not in (None, ""))))
    out.write(f"{pluralize(len(told), 'message')} of {QUEUE.table}.{_covered(look, order) if look else ''}")


def _looked(connection: Connection, table: QueueTable, search: str, limit: int, *, is_newest_first: bool) -> Found:
    asked = query.read(search, content_access.ALL, table)
    if asked.error:
        _wrong(f"{asked.error} Nothing was looked for.")
    return query.look(connection, table, asked, limit, is_newest_first=is_newest_first)


def _covered(look: Found, order: str) -> str:
    has_more = look.onward is not None
    return act_command.covered(look.looked_at, has_more, f"id:{'<' if order == 'newest' else '>'}{look.onward}")


def published(out: Any, options: dict[str, Any]) -> None:
    try:
        text = sys.stdin.read() if options["file"] == "-" else Path(options["file"]).read_text("utf-8")
    except (OSError, ValueError) as error:
        _wrong(f"It cannot be read: {error}.")
    number = leases.publish(QUEUE, text, options["who"], "command", options["reason"])
    out.write(f"1 message published as {number}.")


def released(out: Any, err: Any, options: dict[str, Any]) -> None:
    _act("release", out, err, options)


def ended(out: Any, err: Any, options: dict[str, Any]) -> None:
    _act("rejected" if options["rejected"] else "failed", out, err, options)


def _act(name: ActName, out: Any, err: Any, options: dict[str, Any]) -> None:
    numbers: list[int] = list(dict.fromkeys(options["numbers"]))
    if len(numbers) > MOST:
        _wrong(f"At most {MOST} messages can be acted on at once.")
    if (name != "release" or len(numbers) > REASON_ABOVE) and not options["reason"]:
        _wrong("Give --reason.")
    question = lease_acts.question(name, len(numbers), QUEUE.table, str(settings.PGQUEUE["ENVIRONMENT"]))
    seen = _seen(numbers)
    act_command.confirmed(err, question, options["yes"])
    outcomes = leases.act(name, QUEUE, seen, options["who"], "command", options["reason"])
    done = sum(each.result == "done" for each in outcomes)
    if done:
        out.write(lease_acts.result(name, done))
    for each in outcomes:
        if each.result != "done":
            out.write(f"{each.number}  {each.result}  {each.why}")
    if done != len(outcomes):
        sys.exit(act_command.NOT_ALL)


def _seen(numbers: Sequence[int]) -> list[SeenLease]:
    """Return them with their locks before the question: a lock taken afterwards is kept."""
    with queue_database().read_session() as connection:
        found = lease_messages.listed(connection, _table(connection), numbers)
    locks = {each.id: each.seen for each in found}
    return [SeenLease(each, locks.get(each, "")) for each in numbers]


def _table(connection: Connection) -> QueueTable:
    table = discovery.readable(connection, QUEUE) if is_watched(QUEUE) else None
    if table is None:
        _wrong("There is no lease queue here, or its schema is not watched (PGQUEUE_QUEUE_SCHEMAS).")
    return table


def _told(message: LeaseMessage) -> dict[str, Any]:
    return {
        "number": message.id,
        "state": message.state,
        "kind": message.kind,
        "attempts": message.attempts,
        "holder": message.lock_holder,
    }


def _wrong(why: str) -> NoReturn:
    raise CommandError(f"Nothing was done. {why}", returncode=act_command.WRONG)
