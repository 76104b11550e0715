"""The first page: is anything wrong, where, since when, what next?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import access, paths
from pgqueue_admin.console.board import cells
from pgqueue_admin.console.board import rows as board
from pgqueue_admin.console.overview import changes, looks, ribbon
from pgqueue_admin.console.overview.needs import MOST
from pgqueue_admin.console.overview.view import CAUSES, View
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import Operation
from pgqueue_admin.records.source import source

BOARD, CHANGES = 60, 5


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    view, latest = View(looks.since(request, now), now), changes.latest()
    backlog = board.with_history(view.backlog)
    longest = board.longest(backlog)
    needs = view.needs
    response = render(
        request,
        "pgqueue_admin/overview/page.html",
        {
            "view": view,
            "needs": needs,
            "new": needs.new[:MOST],
            "older": needs.older[:MOST],
            "more_new": len(needs.new) - MOST,
            "more_older": len(needs.older) - MOST,
            "refusal": access.may(request.user, "acknowledge"),
            "run_refusal": access.may(request.user, "run"),
            "backlog": [(row, cells.strip(row, longest), cells.spark(row)) for row in backlog],
            "topics": f"overview:{looks.said(needs.since)} rows:" + ",".join(str(row.queue.pk) for row in backlog),
            "ribbon": ribbon.draw(request.GET.get("w", ""), view.now, view.alerts, latest),
            "causes": [(cause, paths.dead(cause.queue, cause.cause)) for cause in view.causes[:CAUSES]],
            "schemas": ", ".join(source().schemas),
            "board": cells.board(view.within, BOARD),
            "changes": changes.folded(latest)[:CHANGES],
            "running": Operation.objects.filter(state__in=["waiting", "running"]),
        },
    )
    looks.remember(request, response, now)
    return response


urlpatterns = [path("", page, name="overview")]
