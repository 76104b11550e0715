"""The first page: is anything wrong, where, since when, what next?"""

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.alerts import failures_of
from pgqueue_admin.alerts.failures_of import Failures
from pgqueue_admin.alerts.mail import links
from pgqueue_admin.console import permissions
from pgqueue_admin.console.overview import activity, last_visit, timeline
from pgqueue_admin.console.overview.needs_attention import MOST, NeedRow
from pgqueue_admin.console.overview.page_data import CAUSES, OverviewData
from pgqueue_admin.console.queue_row import cells
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import Alert, Operation, database_clock
from pgqueue_admin.models.failure_group import FailureWords, words_of
from pgqueue_admin.models.queue_database import queue_database, schemas_looked_at
from pgqueue_admin.services.operations import staged_retry

BOARD, CHANGES = 60, 5


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    now = database_clock.now()
    view, latest = OverviewData(last_visit.since(request, now), now), activity.latest()
    backlog = queue_rows.with_history(view.backlog)
    longest = queue_rows.longest(backlog)
    needs = view.needs
    shown, causes = [*needs.new[:MOST], *needs.older[:MOST]], view.causes[:CAUSES]
    failures = _failures(causes, shown)
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
            "refusal": permissions.refusal_on_page(request.user, "acknowledge"),
            "run_refusal": permissions.refusal_on_page(request.user, "run"),
            "backlog": [(row, cells.strip(row, longest), cells.spark(row)) for row in backlog],
            "topics": f"overview:{last_visit.said(needs.since)} rows:" + ",".join(str(row.queue.pk) for row in backlog),
            "ribbon": timeline.draw(request.GET.get("w", ""), view.now, view.alerts, latest),
            "causes": _causes(causes, failures),
            "schemas": ", ".join([*queue_database().schemas, *schemas_looked_at()]),
            "board": cells.board(view.within, BOARD),
            "changes": activity.folded(latest)[:CHANGES],
            "running": Operation.objects.filter(state__in=staged_retry.FOLLOWED),
        },
    )
    last_visit.remember(request, response, now)
    return response


def _failures(causes: Sequence[Alert], shown: Sequence[NeedRow]) -> dict[int, Failures]:
    """Failures of the causes, and of each shown need that starts with dead messages and links to them."""
    told = {need.alerts[0].pk: need for need in shown if need.alerts and need.alerts[0].kind == "dead_message"}
    asked = {alert.pk: alert for alert in (*causes, *(need.alerts[0] for need in told.values()))}
    found = failures_of.find(list(asked.values()))
    for number, need in told.items():
        need.failures = found[number]
    return found


def _causes(
    alerts: Sequence[Alert], found: Mapping[int, Failures]
) -> list[tuple[Alert, str, FailureWords | None, Failures]]:
    """Each with the link to its failure or failures, people's notes, and the failures."""
    seen = visible_queues.current()  # under a scope: notes of the person's team
    words = words_of({each for of in found.values() for each in of.fingerprints}) if seen else {}
    rows = []
    for alert in alerts:
        of = found[alert.pk]
        said = [*of.said, *(words[each] for each in of.fingerprints if each in words)]
        rows.append((alert, links.to_failures(alert, of), next(iter(said), None), of))
    return rows


urlpatterns = [path("", page, name="overview")]
