"""What comes later, and is it late? All delayed tables; their messages are on the messages page, like all others."""

from datetime import timedelta
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import query_errors
from pgqueue_admin.console.delayed import due_histogram, rows
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database
from pgqueue_admin.monitor import clock_skew, delayed, discovery
from pgqueue_admin.monitor.clock_skew import ClockSkew


class DelayedLook(NamedTuple):
    """Results of one database: the offset of due times by table, and each table's messages by time span."""

    skews: dict[Address, ClockSkew | None]
    spreads: list[list[int]]


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found = rows.load()
    looks = [_looked(database, [row.address for row in found]) for database in (queue_database(), *looked_at())]
    skews = {table: skew for look, _ in looks if look for table, skew in look.skews.items()}
    spreads = [spread for look, _ in looks if look for spread in look.spreads]
    problem = next((trouble for _, trouble in looks if trouble), None)
    state, sentence = rows.verdict(found)
    about = {
        "rows": [(row, skews.get(row.address)) for row in found],
        "spread": due_histogram.added_up(spreads) if any(look for look, _ in looks) else None,
        "verdict": sentence,
        "verdict_state": state,
        "skewed": [(row, told) for row in found if (told := skews.get(row.address)) and told.is_zone],
        "trouble": problem,
    }
    return render(request, "pgqueue_admin/delayed/page.html", about)


def _looked(
    database: QueueDatabase, tables: list[Address]
) -> tuple[DelayedLook | None, query_errors.QueryError | None]:
    """A database that fails does not affect the others."""
    here = [table for table in tables if database.allows(table)]
    return query_errors.read(lambda connection: _look(connection, database, here), database=database)


def _look(connection: Connection, database: QueueDatabase, tables: list[Address]) -> DelayedLook:
    untouched = {each.address for each in discovery.by_shape(connection, database.schemas) if each.why_unread}
    skews = clock_skew.of_all(connection, [table for table in tables if table not in untouched])
    zones = {table: told.zone if told else timedelta() for table, told in skews.items()}
    return DelayedLook(skews, delayed.spreads(connection, zones))


urlpatterns = [path("delayed/", page, name="delayed")]
