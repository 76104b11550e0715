"""What comes later, and is it late? Every delayed table; its messages have their page where all messages have it."""

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import query_errors
from pgqueue_admin.console.delayed import due_histogram, rows
from pgqueue_admin.console.delayed.due_histogram import DueHistogram
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import clock_skew, delayed, discovery
from pgqueue_admin.monitor.clock_skew import ClockSkew


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found = rows.load()
    looked, problem = query_errors.read(lambda connection: _look(connection, [row.address for row in found]))
    skews, when_due = looked or ({}, None)
    state, sentence = rows.verdict(found)
    about = {
        "rows": [(row, skews.get(row.address)) for row in found],
        "spread": when_due,
        "verdict": sentence,
        "verdict_state": state,
        "skewed": [(row, told) for row in found if (told := skews.get(row.address)) and told.is_zone],
        "trouble": problem,
    }
    return render(request, "pgqueue_admin/delayed/page.html", about)


def _look(connection: Connection, tables: list[Address]) -> tuple[dict[Address, ClockSkew | None], DueHistogram]:
    untouched = {each.address for each in discovery.by_shape(connection, queue_database().schemas) if each.why_unread}
    skews = clock_skew.of_all(connection, [table for table in tables if table not in untouched])
    zones = {table: told.zone if told else timedelta() for table, told in skews.items()}
    return skews, due_histogram.added_up(delayed.spreads(connection, zones))


urlpatterns = [path("delayed/", page, name="delayed")]
