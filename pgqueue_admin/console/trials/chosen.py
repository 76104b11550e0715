"""The messages chosen for a trial, by the address: an operation's set, a search, or ids."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import QueryDict

from pgqueue_admin.archive import store
from pgqueue_admin.console.archive import search
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import queries
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.trials import MOST

COUNTED = 100_000


@dataclass(frozen=True, slots=True)
class ChosenMessages:
    """``of``: how many there are to choose from, of which the first ``MOST`` are tried."""

    ids: Sequence[int]
    of: int
    selection: str = ""
    operation: int | None = None


def read(connection: Connection, asked: QueryDict, access: ContentAccess) -> ChosenMessages:
    """Raises OperationRefused, DatabaseError."""
    if (number := parse_int(asked.get("operation", ""))) is not None:
        return _of_operation(connection, number)
    if "q" in asked:
        return _found(connection, asked.get("q", ""), access)
    given = [each for each in map(parse_int, asked.getlist("id")[:MOST]) if each is not None]
    return ChosenMessages(given, len(given))


def _of_operation(connection: Connection, number: int) -> ChosenMessages:
    operation = Operation.objects.filter(pk=number, kind=Operation.Kind.RETRY).first()
    if operation is None:
        raise OperationRefused(f"There is no retry {number}.")
    ids = [row.archive_id for row in queries.items(connection, number, limit=MOST)]
    return ChosenMessages(ids, operation.count, operation.selection, number)


def _found(connection: Connection, q: str, access: ContentAccess) -> ChosenMessages:
    query = search.read(q, access)
    if query.error:
        raise OperationRefused(query.error)
    if query.filter.state not in ("", "dead"):
        raise OperationRefused("A trial is for dead messages.")
    filter = replace(query.filter, state="dead")
    messages = store.page(connection, filter, limit=MOST).messages
    of = len(messages) if len(messages) < MOST else store.count(connection, filter, COUNTED).number
    return ChosenMessages([each.id for each in messages], of, q)
