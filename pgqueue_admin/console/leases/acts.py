"""Actions on ticked messages of the lease queue: confirmed on their own page, done if the lock is unchanged."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from pgqueue_admin.archive.messages import LARGEST_ID
from pgqueue_admin.console import permissions, query_errors, responses, url_converters
from pgqueue_admin.console.leases import table
from pgqueue_admin.console.leases.lookup import lease_table
from pgqueue_admin.console.messages.waiting_acts import PossibleAct
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import lease_acts as words
from pgqueue_admin.lease.errors import LeaseQueueMissing
from pgqueue_admin.monitor import lease_messages
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access, leases
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.leases import ACTS, MOST, ActName, LeaseOutcome, SeenLease
from pgqueue_admin.services.operations.acts_allowed import no_lease_queue
from pgqueue_admin.services.operations.confirmation import REASON_ABOVE
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused

TEMPLATE = "pgqueue_admin/leases/acts.html"
_LOCK = re.compile(r"[0-9A-Za-z.+-]{0,60}", re.ASCII)  # a token, the end of a lock in seconds, or nothing


class AskedLease(NamedTuple):
    """A ticked message; ``row`` None: it has ended since. ``is_same``: its lock is the one that was shown."""

    number: int
    row: table.LeaseRow | None
    is_same: bool


@dataclass(frozen=True)
class Asked:
    """The action that a form requests."""

    name: ActName
    address: Address
    ticks: tuple[str, ...]
    reason: str
    next: str

    @property
    def seen(self) -> list[SeenLease]:
        return [row for tick in self.ticks if (row := _seen(tick))]

    @property
    def needs_reason(self) -> bool:
        return bool(ACTS[self.name].result) or len(self.seen) > REASON_ABOVE


def offered(person: Any, found: QueueTable) -> dict[str, Any]:
    """Template context: the possible actions on its messages; ``foreign``: why there are none."""
    foreign = no_lease_queue(found.address) or ("" if found.has_attempts else str(LeaseQueueMissing.__doc__))
    possible = (("release", "Release", ""), ("failed", "End as failed", "bad"), ("rejected", "End as rejected", "bad"))
    acts = [
        PossibleAct(name, word, css, "", str(permissions.refusal_on_page(person, ACTS[cast(ActName, name)].verb) or ""))
        for name, word, css in possible
    ]
    return {"waiting_acts": acts, "foreign": foreign, "pickable": not foreign}


@require_POST
def act(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    asked = _asked(request, Address(schema, table))
    if not 0 < len(asked.seen) <= MOST:
        refused = "no message was ticked" if not asked.seen else f"at most {MOST} messages can be acted on at once"
        responses.refused(request, f"Nothing was {ACTS[asked.name].done}: {refused}.")
        return responses.SeeOther(asked.next)
    return _do(request, asked) if "sure" in request.POST else _question(request, asked)


def _do(request: HttpRequest, asked: Asked) -> HttpResponse:
    nothing = f"Nothing was {ACTS[asked.name].done}"
    if asked.needs_reason and not asked.reason and not _refusal(request, asked):
        return _question(request, asked, f"{nothing}: a reason is asked for.", 422)
    try:
        outcomes = leases.act(asked.name, asked.address, asked.seen, request.user, "console", asked.reason)
    except OperationNotAllowed as error:
        return _question(request, asked, str(error), 403)
    except OperationRefused as error:
        return _question(request, asked, str(error), 422)
    except DatabaseError as error:
        return _question(request, asked, f"{nothing}. {error}", 503)
    _say(request, asked, outcomes)
    return responses.SeeOther(asked.next)


def _say(request: HttpRequest, asked: Asked, outcomes: Sequence[LeaseOutcome]) -> None:
    """Report how many were done, and the numbers of the others by reason."""
    if done := [each for each in outcomes if each.result == "done"]:
        archived = [each.archive_id for each in done if each.archive_id]
        see = Way("See it in the archive", reverse("archived_message", args=archived)) if len(archived) == 1 else None
        responses.done(request, words.result(asked.name, len(done)), *([see] if see else []))
    past, rest = ACTS[asked.name].done, [each for each in outcomes if each.result != "done"]
    for (result, why), count in Counter((each.result, each.why) for each in rest).items():
        which = ", ".join(f"{each.number:,}" for each in rest if (each.result, each.why) == (result, why))
        if result == "unknown":
            responses.refused(request, f"Whether message {which} was {past} is not known. {why}")
        else:
            were = "was" if count == 1 else "were"
            responses.refused(request, f"{count:,} of {len(outcomes):,} {were} not {past}: {which}. {why}")


def _question(request: HttpRequest, asked: Asked, fault: str = "", status: int = 200) -> HttpResponse:
    rows, problem = query_errors.read(
        lambda connection: _read(connection, asked, content_access.of(request.user)), asked.address
    )
    count = len(asked.seen)
    about = {
        "asked": asked,
        "rows": rows or [],
        "trouble": problem,
        "fault": fault,
        "question": words.question(asked.name, count, asked.address.table, str(settings.PGQUEUE["ENVIRONMENT"])),
        "then": words.then(asked.name),
        "button": words.button(asked.name, count),
        "keep": words.keep(count),
        "count": count,
        "needs_reason": asked.needs_reason,
        "refusal": _refusal(request, asked),
    }
    return render(request, TEMPLATE, about, status=status)


def _refusal(request: HttpRequest, asked: Asked) -> str:
    return leases.refusal(ACTS[asked.name].verb, asked.address, request.user)


def _read(connection: Connection, asked: Asked, access: ContentAccess) -> list[AskedLease]:
    """The ticked messages in their present state."""
    found = lease_table(connection, asked.address)
    shown = lease_messages.listed(connection, found, [each.number for each in asked.seen]) if found else []
    rows = {row.message.id: row for row in table.table(shown, access).rows}
    return [_asked_row(each, rows.get(each.number)) for each in asked.seen]


def _asked_row(seen: SeenLease, row: table.LeaseRow | None) -> AskedLease:
    return AskedLease(seen.number, row, row is not None and row.message.seen == seen.lock)


def _asked(request: HttpRequest, address: Address) -> Asked:
    name = request.POST.get("act", "")
    if name not in ACTS:
        raise Http404("There is no such act on messages of the lease queue.")
    ticks = tuple(dict.fromkeys(request.POST.getlist("id")))
    back = responses.came_from(request) or url_converters.queue(address, "messages")
    return Asked(name, address, ticks, responses.reason(request), back)


def _seen(tick: str) -> SeenLease | None:
    """None for a tick that no page of ours wrote."""
    number, colon, lock = tick.partition(":")
    known = parse_int(number, LARGEST_ID)
    return SeenLease(known, lock) if known is not None and colon and _LOCK.fullmatch(lock) else None


urlpatterns = [path("queues/<name:schema>/<name:table>/messages/locks/", act, name="lease_acts")]
