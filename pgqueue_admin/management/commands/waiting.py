"""manage.py waiting: waiting and delayed messages from a shell, through the same services as the pages."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.archive.message_copy import WaitingOne
from pgqueue_admin.console.messages.detail import delayed_rows, message_list
from pgqueue_admin.console.messages.detail.message_list import MessageListQuery
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting import waiting_acts
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.management import act_command
from pgqueue_admin.management.act_command import EXIT_CODES, NOT_ALL, WRONG
from pgqueue_admin.management.dead_messages import dump
from pgqueue_admin.models.queue_database import database_of
from pgqueue_admin.monitor import browse, delayed
from pgqueue_admin.monitor.browse import MessagePage
from pgqueue_admin.monitor.delayed import DelayedPage
from pgqueue_admin.monitor.message import DelayedMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import content_access, message_copies, typed_messages, waiting_messages
from pgqueue_admin.services.operations import acts_allowed
from pgqueue_admin.services.operations.acts_allowed import looked_at
from pgqueue_admin.services.operations.confirmation import REASON_ABOVE
from pgqueue_admin.services.typed_messages import CONTENT_TYPES, JSON, TypedMessage
from pgqueue_admin.services.waiting_elsewhere import ActOutcome
from pgqueue_admin.services.waiting_messages import MOST

__all__ = ["EXIT_CODES", "Command"]
ACTS = {  # verb: the act's name, and what it does
    "discard": ("discard", "Takes messages of a queue into the bin."),
    "archive": ("move_out", "Moves messages of a queue to the dead, as what wedges it."),
    "move": ("move", "Moves messages into another known input queue."),
    "run-now": ("run_now", "Sends delayed messages on now, as when they are due."),
    "cancel": ("cancel", "Takes delayed messages into the bin."),
}
Message = WaitingMessage | DelayedMessage


class Command(BaseCommand):
    help = (
        "Lists messages that wait or are delayed; moves, discards and archives them, runs or cancels delayed ones, "
        "copies one, and sends one. Acts leave alone what is in flight, or what has left since the look."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = act_command.listing(verbs.add_parser("list", help="Head of a queue, or soonest of a delayed table."))
        listing.add_argument("--limit", type=int, default=50, help="How many, 1 to 500. Default: 50.")
        listing.add_argument("--search", default="", help="Those that fit, as in its page's box: type:Ping age:>1h.")
        for verb, (_, said) in ACTS.items():
            act_command.asking(verbs.add_parser(verb, help=said))
        copy = act_command.named(verbs.add_parser("copy", help="Sends one again with a new id; the original stays."))
        send = act_command.named(verbs.add_parser("send", help="Sends one message to a queue."))
        for verb in ("list", *ACTS, "copy", "send"):
            verbs.choices[verb].add_argument(
                "queue", help='Billing, or \'"public"."Billing"\'; a delayed table likewise.'
            )
        for verb in ACTS:
            verbs.choices[verb].add_argument(
                "rows", nargs="+", type=UUID, metavar="ROW", help=f"Row ids; at most {MOST}."
            )
        copy.add_argument("rows", nargs=1, type=UUID, metavar="ROW", help="Its row id.")
        for verb in ("move", "copy"):
            into = "The queue that they go to." if verb == "move" else "The queue. Default: the same."
            verbs.choices[verb].add_argument("--to", metavar="QUEUE", required=verb == "move", help=into)
        send.add_argument("--type", required=True, help="Message type, as Shop.PlaceOrder.")
        send.add_argument("--body", default="-", metavar="FILE", help="Its body, UTF-8. Default: -, standard input.")
        send.add_argument("--content-type", choices=CONTENT_TYPES, default=JSON, help=f"Default: {JSON}.")
        send.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="Repeatable.")

    def handle(self, *, verb: str, **options: Any) -> None:
        with act_command.ending(options):
            address = act_command.address_of(options["queue"])
            if verb in ACTS:
                self._act(ACTS[verb][0], address, options)
            else:
                {"list": self._list, "copy": self._copy, "send": self._send}[verb](address, options)

    def _list(self, address: Address, options: dict[str, Any]) -> None:
        limit = options["limit"]
        if not 1 <= limit <= 500:
            self._wrong("--limit is 1 to 500.")
        asked = message_list.asked({"q": options["search"]}, content_access.ALL)
        with database_of(address).read_session(address, searching=asked.wanted is not None) as connection:
            table = looked_at(connection, address)
            page = self._page(connection, table, asked, limit)
        found = [_told(each) for each in page.messages]
        looked = {"looked_at": page.looked_at, "more": page.next is not None} if options["search"] else {}
        if options["json"]:
            return dump(self.stdout, {"messages": found, **looked})
        for each in found:
            self.stdout.write(act_command.line(*(value for value in each.values() if value not in (None, ""))))
        self.stdout.write(f"{pluralize(len(found), 'message')} of {address.table}.{_covered(page)}")

    def _page(
        self, connection: Connection, table: QueueTable, asked: MessageListQuery, limit: int
    ) -> MessagePage | DelayedPage:
        asked = asked.fitting(table, connection.dialect.searches_waiting)
        if asked.error:
            self._wrong(f"{asked.error} Nothing was looked for.")
        if table.kind is TableKind.DELAYED:
            return delayed_rows.listed(connection, table, asked, limit=limit)
        return message_list.page(connection, table, asked, None, limit)

    def _act(self, name: str, address: Address, options: dict[str, Any]) -> None:
        rows: list[UUID] = list(dict.fromkeys(options["rows"]))
        if len(rows) > MOST:
            self._wrong(f"At most {MOST} messages can be acted on at once.")
        if len(rows) > REASON_ABOVE and not options["reason"]:
            self._wrong(f"Above {REASON_ABOVE} messages give --reason.")
        target = act_command.address_of(options["to"]) if name == "move" else None
        seen, gone = self._seen(address, rows)
        if not seen:
            self._wrong("None of these messages is there now.")
        where = f" to {target.table}" if target else ""
        question = waiting_acts.question(name, len(seen), address.table, str(settings.PGQUEUE["ENVIRONMENT"]))
        act_command.confirmed(self.stderr, f"{question[:-1]}{where}?", options["yes"])
        outcomes = waiting_messages.act(name, address, seen, options["who"], "command", options["reason"], target)
        self._say(name, address, target, outcomes, gone)

    def _seen(self, address: Address, rows: Sequence[UUID]) -> tuple[list[SeenRow], list[UUID]]:
        """Return the rows as they are now, and those that are gone: acts are refused on rows that change afterwards."""
        with database_of(address).read_session(address) as connection:
            table = acts_allowed.table_of(connection, address)
            found = {row: _one(connection, table, row) for row in rows}
        seen = [_as_seen(address, row, each) for row, each in found.items() if each]
        return seen, [row for row, each in found.items() if each is None]

    def _say(
        self, name: str, address: Address, target: Address | None, outcomes: Sequence[ActOutcome], gone: list[UUID]
    ) -> None:
        done = sum(each.result == "done" for each in outcomes)
        if done:
            days, to = settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"], target.table if target else ""
            self.stdout.write(waiting_acts.result(name, done, address.table, to, days))
        for each in outcomes:
            if each.result != "done":
                self.stdout.write(f"{each.seen.row_id}  {each.result}  {each.why}")
        for row in gone:
            self.stdout.write(f"{row}  skipped  It is not there now.")
        if done != len(outcomes) + len(gone):
            sys.exit(NOT_ALL)

    def _copy(self, address: Address, options: dict[str, Any]) -> None:
        target = act_command.address_of(options["to"]) if options["to"] else address
        [row] = options["rows"]
        sent = message_copies.copy(WaitingOne(address, row), target, options["who"], "command", options["reason"])
        self.stdout.write(f"1 copy sent to {target.table} as {sent}. The original stays as it is.")

    def _send(self, address: Address, options: dict[str, Any]) -> None:
        try:
            body = sys.stdin.read() if options["body"] == "-" else Path(options["body"]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._wrong(f"Its body cannot be read: {error}.")
        typed = TypedMessage(options["type"], body, options["content_type"], "\n".join(options["header"]))
        sent = typed_messages.send(address, typed, options["who"], "command", options["reason"])
        self.stdout.write(f"1 message sent to {address.table} as {sent}.")

    def _wrong(self, why: str) -> NoReturn:
        raise CommandError(f"Nothing was done. {why}", returncode=WRONG)


def _one(connection: Connection, table: QueueTable, row: UUID) -> Message | None:
    read = delayed.message if table.kind is TableKind.DELAYED else browse.message
    return read(connection, table, row)


def _covered(page: MessagePage | DelayedPage) -> str:
    if page.looked_at is None:
        return ""
    seq = page.next.get("after") if isinstance(page, MessagePage) and isinstance(page.next, dict) else None
    return act_command.covered(page.looked_at, page.next is not None, f"seq:>{seq}" if isinstance(seq, int) else "")


def _as_seen(address: Address, row: UUID, message: Message) -> SeenRow:
    if isinstance(message, DelayedMessage):
        return SeenRow(address, row, due=message.due_text)
    return SeenRow(address, row, message.seq)


def _told(message: Message) -> dict[str, Any]:
    if isinstance(message, DelayedMessage):
        return {"row": message.id, "due": message.due_text, "type": message.type, "to": message.destination}
    return {"row": message.id, "seq": message.seq, "state": message.state, "type": message.type}
