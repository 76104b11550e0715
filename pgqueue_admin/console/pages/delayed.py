"""What comes later, and is it late? Every delayed table; its messages have their page where all messages have it."""

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import trouble
from pgqueue_admin.console.delayed import rows, spread
from pgqueue_admin.console.delayed.spread import Spread
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.monitor import delayed, discovery, skew
from pgqueue_admin.monitor.skew import Skew
from pgqueue_admin.records.source import source


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found = rows.load()
    looked, problem = trouble.read(lambda connection: _look(connection, [row.address for row in found]))
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


def _look(connection: Connection, tables: list[Address]) -> tuple[dict[Address, Skew | None], Spread]:
    untouched = {each.address for each in discovery.by_shape(connection, source().schemas) if each.why_unread}
    skews = skew.of_all(connection, [table for table in tables if table not in untouched])
    zones = {table: told.zone if told else timedelta() for table, told in skews.items()}
    return skews, spread.added_up(delayed.spreads(connection, zones))


urlpatterns = [path("delayed/", page, name="delayed")]
