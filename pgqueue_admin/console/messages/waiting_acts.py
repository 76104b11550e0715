"""Acts on waiting or delayed messages: confirmed on a page of their own, then done to each that is still there."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from pgqueue_admin.archive.held_row import SeenRow
from pgqueue_admin.console import navigation, permissions, query_errors, responses, url_converters
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.queues import input_queues
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import waiting_acts
from pgqueue_admin.models.queue_database import database_of, queue_database, write_refusal
from pgqueue_admin.monitor import browse, delayed
from pgqueue_admin.monitor.message import DelayedMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import waiting_messages
from pgqueue_admin.services.operations import acts_allowed
from pgqueue_admin.services.operations.confirmation import REASON_ABOVE
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.unattended import without_receiver
from pgqueue_admin.services.waiting_elsewhere import ActOutcome
from pgqueue_admin.services.waiting_messages import ACTS, MOST

TEMPLATE = "pgqueue_admin/waiting_acts/page.html"
_DUE = re.compile(r"-?infinity|\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00( BC)?", re.ASCII)


class PossibleAct(NamedTuple):
    """``refusal``: why this person may not."""

    name: str
    word: str
    kind: str
    key: str
    refusal: str


class AskedRow(NamedTuple):
    """A ticked message; ``message`` is None if it has left since."""

    tick: str
    seen: SeenRow
    message: WaitingMessage | DelayedMessage | None


@dataclass(frozen=True)
class WaitingActRequest:
    """An act, as its form requests it."""

    name: str
    address: Address
    ticks: tuple[str, ...]
    reason: str
    target: Address | None
    next: str

    @property
    def seen(self) -> list[SeenRow]:
        return [row for tick in self.ticks if (row := _seen(self.address, tick))]


def possible(person: Any, is_delayed: bool) -> list[PossibleAct]:
    """Acts on messages of a queue, or of a delayed table."""
    offered = (
        (("run_now", "Run now", "go", "m"), ("cancel", "Cancel", "bad", "d"))
        if is_delayed
        else (("discard", "Discard", "bad", "d"), ("move", "Move", "", "m"), ("move_out", "Move to dead", "", ""))
    )
    return [PossibleAct(*each, refusal=str(permissions.refusal_on_page(person, each[0]) or "")) for each in offered]


def offered(person: Any, table: QueueTable) -> dict[str, Any]:
    """Template context: the acts on messages of the table; ``foreign``: why there are none."""
    if why := write_refusal(table.address):
        return {"foreign": why, "home": table.address, "is_only_looked_at": True}
    try:
        home = acts_allowed.home_of(table)
    except OperationRefused as refused:
        return {"foreign": str(refused), "home": table.address}
    foreign = acts_allowed.why_foreign(table)
    acts = possible(person, table.kind is TableKind.DELAYED)
    return {"waiting_acts": acts, "foreign": foreign, "home": home, "pickable": not foreign}


def tick(message: WaitingMessage | DelayedMessage) -> str:
    """The value that a form posts of a row: its id, and its seq or due time to detect changes."""
    return f"{message.id}:{message.due_text if isinstance(message, DelayedMessage) else message.seq}"


@require_POST
def act(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    asked = _asked(request, Address(schema, table))
    done = ACTS[asked.name].done
    if not 0 < len(asked.seen) <= MOST:
        refused = "no message was ticked" if not asked.seen else f"at most {MOST} messages can be acted on at once"
        responses.refused(request, f"Nothing was {done}: {refused}.")
        return responses.SeeOther(asked.next)
    return _do(request, asked) if "sure" in request.POST else _question(request, asked)


def _do(request: HttpRequest, asked: WaitingActRequest) -> HttpResponse:
    nothing = f"Nothing was {ACTS[asked.name].done}"
    if refusal := permissions.refusal_on_page(request.user, asked.name):
        return _question(request, asked, f"{nothing}: {refusal}.", 403)
    if len(asked.seen) > REASON_ABOVE and not asked.reason:
        return _question(request, asked, f"{nothing}: above {REASON_ABOVE} messages a reason is asked for.", 422)
    if asked.name == "move" and asked.target is None:
        return _question(request, asked, f"{nothing}: choose the queue that they go to.", 422)
    try:
        outcomes = waiting_messages.act(
            asked.name, asked.address, asked.seen, request.user, "console", asked.reason, asked.target
        )
    except OperationRefused as error:
        return _question(request, asked, str(error), 422)
    except DatabaseError as error:
        return _question(request, asked, f"{nothing}. {error}", 503)
    _say(request, asked, outcomes)
    return responses.SeeOther(_onward(asked, outcomes))


def _say(request: HttpRequest, asked: WaitingActRequest, outcomes: Sequence[ActOutcome]) -> None:
    done = [each for each in outcomes if each.result == "done"]
    if done:
        target, days = asked.target.table if asked.target else "", settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]
        said = waiting_acts.result(asked.name, len(done), asked.address.table, target, days)
        responses.done(request, said, *_ways(asked, done))
    past, rest = ACTS[asked.name].done, [each for each in outcomes if each.result != "done"]
    for why, count in Counter(each.why for each in rest).items():
        number = f"{count:,} of {len(outcomes):,}" if len(outcomes) > 1 else ""
        unknown = any(each.result == "unknown" and each.why == why for each in rest)
        begins = f"{number} {'was' if count == 1 else 'were'} not {past}." if number else f"Nothing was {past}."
        responses.refused(request, f"Whether it was {past} is not known. {why}" if unknown else f"{begins} {why}")


def _ways(asked: WaitingActRequest, done: Sequence[ActOutcome]) -> list[Way]:
    archived = [each.archive_id for each in done if each.archive_id]
    ways = [Way("See the queue", url_converters.queue(asked.target))] if asked.target else []
    if len(archived) == 1:
        ways.append(Way("See the message", reverse("archived_message", args=archived)))
    if archived and asked.name != "move_out":
        ways.append(Way("See the bin", reverse("bin")))
    return ways


def _onward(asked: WaitingActRequest, outcomes: Sequence[ActOutcome]) -> str:
    """Back to the list; from a message's own page to where the message is now."""
    own = reverse("waiting_message", args=[*asked.address, outcomes[0].seen.row_id])
    if asked.next.partition("?")[0] != own or outcomes[0].result != "done":
        return asked.next
    archive_id = outcomes[0].archive_id
    if archive_id:
        return reverse("archived_message", args=[archive_id])
    return url_converters.queue(asked.target or asked.address, "messages")


def _question(request: HttpRequest, asked: WaitingActRequest, fault: str = "", status: int = 200) -> HttpResponse:
    found, problem = query_errors.read(lambda connection: _read(connection, asked), asked.address)
    table, refused = found[0] if found else None, found[2] if found else ""
    if table and table.kind is TableKind.DELAYED:
        navigation.stands_under(request, "delayed")
    count, home = len(asked.seen), (table.delayed_of or table.address) if table else asked.address
    environment = str(settings.PGQUEUE["ENVIRONMENT"])
    foreign = acts_allowed.why_foreign(table) if table else ""
    about = {
        "asked": asked,
        "rows": found[1] if found else [],
        "trouble": problem,
        "fault": fault,
        "question": waiting_acts.question(asked.name, count, asked.address.table, environment),
        "into": waiting_acts.into(asked.name, home.table),
        "button": waiting_acts.button(asked.name, count),
        "keep": waiting_acts.keep(asked.name, count),
        "count": count,
        "home": home,
        "foreign": foreign,
        "refusal": permissions.refusal_on_page(request.user, asked.name) or refused or foreign,
        "taken_out": waiting_messages.TAKEN_OUT if table and not acts_allowed.is_ours(home) else "",
        "needs_reason": count > REASON_ABOVE,
        "queues": _queues(asked) if asked.name == "move" else None,
        "without_receiver": without_receiver([_canonical(home)]) if asked.name == "run_now" else (),
    }
    return render(request, TEMPLATE, about, status=status)


Found = tuple[QueueTable | None, list[AskedRow], str]


def _read(connection: Connection, asked: WaitingActRequest) -> Found:
    """The table, its ticked messages as they are now, and why no act is possible."""
    try:
        table = acts_allowed.table_of(connection, asked.address)
    except OperationRefused as refused:
        return None, [], str(refused)
    one = delayed.message if table.kind is TableKind.DELAYED else browse.message
    rows = []
    for each in asked.ticks:
        if seen := _seen(asked.address, each):
            message = one(connection, table, str(seen.row_id))
            rows.append(AskedRow(each, seen, message if message and tick(message) == each else None))
    return table, rows, ""


def _queues(asked: WaitingActRequest) -> list[tuple[str, Address, str]]:
    """Canonical name, address, and a note if the queue has no receiver."""
    home = database_of(asked.address)
    known = [each for each in input_queues.known() if each[1] != asked.address and database_of(each[1]) == home]
    says = {each.address: each.says for each in without_receiver([name for name, _ in known])}
    return [(name, address, says.get(address, "")) for name, address in known]


def _canonical(address: Address) -> str:
    return queue_database().dialect.canonical(address)


def _asked(request: HttpRequest, address: Address) -> WaitingActRequest:
    name = request.POST.get("act", "")
    if name not in ACTS:
        raise Http404("There is no such act on messages that wait.")
    target = next(iter(parsed([request.POST.get("to", "")])), None) if name == "move" else None
    ticks = tuple(dict.fromkeys(request.POST.getlist("id")))
    back = responses.came_from(request) or url_converters.queue(address, "messages")
    return WaitingActRequest(name, address, ticks, responses.reason(request), target, back)


def _seen(address: Address, text: str) -> SeenRow | None:
    """None unless one of our pages wrote it."""
    row_id, _, state = text.partition(":")
    try:
        known = UUID(row_id)
    except ValueError:
        return None
    if _DUE.fullmatch(state):
        return SeenRow(address, known, due=state)
    seq = parse_int(state.removeprefix("-"))
    return None if seq is None else SeenRow(address, known, -seq if state.startswith("-") else seq)


urlpatterns = [path("queues/<name:schema>/<name:table>/messages/acts/", act, name="waiting_acts")]
