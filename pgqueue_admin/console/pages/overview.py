"""The first page: is anything wrong, where, since when, what next?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import paths
from pgqueue_admin.console.board import cells
from pgqueue_admin.console.board import rows as board
from pgqueue_admin.console.overview import changes, ribbon
from pgqueue_admin.console.overview.needs import MOST
from pgqueue_admin.console.overview.view import CAUSES, View
from pgqueue_admin.records.models import Operation
from pgqueue_admin.records.source import source

BOARD, CHANGES = 60, 5


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    view, latest = View(), changes.latest()
    backlog = board.with_history(view.backlog)
    longest = board.longest(backlog)
    return render(
        request,
        "pgqueue_admin/overview/page.html",
        {
            "view": view,
            "needs": view.needs[:MOST],
            "more_needs": len(view.needs) - MOST,
            "backlog": [(row, cells.strip(row, longest), cells.spark(row)) for row in backlog],
            "topics": "overview rows:" + ",".join(str(row.queue.pk) for row in backlog),
            "ribbon": ribbon.draw(request.GET.get("w", ""), view.now, view.alerts, latest),
            "causes": [(cause, paths.dead(cause.queue, cause.cause)) for cause in view.causes[:CAUSES]],
            "schemas": ", ".join(source().schemas),
            "board": cells.board(view.within, BOARD),
            "changes": changes.folded(latest)[:CHANGES],
            "running": Operation.objects.filter(state__in=["waiting", "running"]),
        },
    )


urlpatterns = [path("", page, name="overview")]
